package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A reader counts its connections, and those that it loses; and it knows when a partition is empty.
func TestReadersKnowTheirConnections(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			c := fakeCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
			put(t, c, records(100, 2, sized(10)))
			s := spec(t, urlOf(c, "t"), map[string][]string{"engine": {engine}, "fetch-wait": {"50ms"}})
			s.Op = cluster.OpConsume
			var lost atomic.Int64
			s.Happened = func(name string, _ time.Time, _ time.Duration) {
				if name == "connection lost" {
					lost.Add(1)
				}
			}
			sess := assert.Value(open(t, s))(t)
			src := sess.Source()
			known, answering := src.(load.Connected), src.(load.Answering)
			n, ok := known.Connected()
			assert.True(t, n == 0 && ok, "%d connections before it reads, %t; want 0", n, ok)
			assert.Equal(t, answering.Patience(), 50*time.Millisecond, "the broker's patience")
			var cut atomic.Bool // the next request for records ends its connection
			c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				if cut.CompareAndSwap(true, false) {
					return nil, errors.New("cut"), true
				}
				return nil, nil, false
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			start := time.Now()
			now := func() time.Duration { return time.Since(start) }
			var mu sync.Mutex
			events := 0
			done := make(chan error, 1)
			go func() {
				done <- src.Receive(ctx, now, func(_ int, as []load.Arrival) {
					mu.Lock()
					defer mu.Unlock()
					for _, a := range as {
						events += int(a.Events)
					}
				})
			}()
			reach := func(what string, ok func() bool) {
				t.Helper()
				for deadline := time.Now().Add(time.Minute); !ok(); {
					assert.Must(t, !time.Now().After(deadline), "not reached: %s", what)
					select {
					case err := <-done:
						t.Fatalf("it ended: %v", err)
					case <-time.After(5 * time.Millisecond):
					}
				}
			}
			have := func(n int) func() bool {
				return func() bool {
					mu.Lock()
					defer mu.Unlock()
					return events >= n
				}
			}
			emptied := func() []time.Duration { return answering.Emptied() }
			reach("all events", have(100))
			reach("connections", func() bool { n, _ := known.Connected(); return n > 0 })
			reach("empty partitions", func() bool { e := emptied(); return len(e) == 2 && e[0] > 0 && e[1] > 0 })
			before := emptied()
			reach("the word that they are still empty", func() bool { e := emptied(); return e[0] > before[0] && e[1] > before[1] })
			assert.Equal(t, lost.Load(), 0, "connections lost")
			cut.Store(true)
			reach("a lost connection", func() bool { return lost.Load() == 1 })
			put(t, c, []*kgo.Record{{Partition: 0, Value: []byte("more")}, {Partition: 1, Value: []byte("more")}})
			reach("what came after it", have(102))
			cancel()
			<-done
			assert.Equal(t, lost.Load(), 1, "connections lost, without those that are closed at the end")
			assert.Equal[any](t, sess.Facts()["lost_connections"], uint64(1), "the facts lost connections")
			n, _ = known.Connected()
			assert.True(t, n == 0, "%d connections at the end, want 0", n)
			var reconnects, requests uint64
			for _, m := range sess.(interface{ Brokers() []measure.Client }).Brokers() {
				reconnects, requests = reconnects+m.Reconnects, requests+m.Requests
			}
			assert.True(t, reconnects == 1 && requests >= 3, "%d reconnects and %d requests, want 1 and some", reconnects, requests)
		})
	}
}

// A broker that accepts connections, says what it can, and then closes them is asked again after pauses
// that grow, as one that cannot be reached.
func TestFetcherBacksOff(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	c := fakeCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	put(t, c, records(10, 2, sized(10)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked atomic.Int64
	var enough atomic.Bool
	c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if n := asked.Add(1); n >= 4 && enough.Load() {
			cancel()
		}
		return nil, errors.New("cut"), true
	})
	src := source(t, c, nil)
	start := time.Now()
	time.AfterFunc(2*time.Second, func() { enough.Store(true) })
	_ = src.Receive(ctx, func() time.Duration { return time.Since(start) }, func(int, []load.Arrival) {})
	took := time.Since(start)
	// Of each partition at once, again at once, and then after 80 ms, 160 ms and so on.
	n := asked.Load()
	assert.True(t, n <= 16+2*int64(took/time.Second), "%d requests in %v, want few", n, took)
}

// A partition that was read to its end is never silent.
func TestEmptiedAtTheEnd(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	c := fakeCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	put(t, c, []*kgo.Record{{Partition: 0, Value: []byte("one")}})
	for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
		src := source(t, c, map[string][]string{"engine": {engine}, "until-end": {"true"}})
		got := drain(t, src, nil)
		assert.Must(t, got.events == 1, "%s: %d events, want 1", engine, got.events)
		first := src.(load.Answering).Emptied()
		<-time.After(2 * time.Millisecond)
		for i, at := range src.(load.Answering).Emptied() {
			assert.True(t, at > first[i], "%s: partition %d was empty at %v, and then at %v", engine, i, first[i], at)
		}
	}
}

// TestOpenTransactionBlocks: a reader of committed events ends before another producer's open transaction. The log does
// not end there: the reader lags behind it, and can say whose transaction it is.
func TestOpenTransactionBlocks(t *testing.T) {
	for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
		t.Run(engine, func(t *testing.T) {
			c := fakeCluster(t, kfake.SeedTopics(1, "t"))
			s := spec(t, urlOf(c, "t"), map[string][]string{"engine": {engine}, "isolation": {"committed"}})
			s.Op = cluster.OpRoundTrip
			sess, err := open(t, s)
			assert.OK(t, err)
			src := sess.Source()
			seek, blocking := src.(protocol.Seekable), src.(protocol.BlockReporter)
			text, err := blocking.Blocked(t.Context())
			assert.True(t, text == "" && err == nil, "nothing is open: %q, %v", text, err)

			before, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("t"))
			assert.OK(t, err)
			defer before.Close()
			assert.OK(t, before.ProduceSync(t.Context(), kgo.StringRecord("before")).FirstErr())
			other, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("t"), kgo.TransactionalID("other"))
			assert.OK(t, err)
			defer other.Close()
			assert.OK(t, other.BeginTransaction())
			assert.OK(t, other.ProduceSync(t.Context(), kgo.StringRecord("open")).FirstErr())
			assert.OK(t, before.ProduceSync(t.Context(), kgo.StringRecord("behind it")).FirstErr())
			id, _, err := other.ProducerID(t.Context())
			assert.OK(t, err)

			read := make(chan int32, 10)
			go func() {
				_ = src.Receive(t.Context(), func() time.Duration { return time.Second }, func(_ int, as []load.Arrival) {
					for i := range as {
						read <- as[i].Events
					}
				})
			}()
			assert.Equal(t, <-read, 1, "events before the transaction")
			testkit.Until(t, "the broker has said that there are more", func() bool { return seek.Positions()[0] >= 1 && src.Lag()[0] >= 2 })
			ends, err := seek.Ends(t.Context())
			assert.OK(t, err)
			if at, lag := seek.Positions()[0], src.Lag()[0]; ends[0] != 3 || at != 1 || lag != 2 {
				t.Errorf("read up to %d of %d, lag %d; want 1 of 3, and 2", at, ends[0], lag)
			}
			text, err = blocking.Blocked(t.Context())
			want := fmt.Sprintf("the last stable offset of t-0 stands at 1, before its end at 3, because of the open transaction of producer id %d", id)
			assert.True(t, text == want && err == nil, "got %q, %v; want %q", text, err, want)
		})
	}
}

// wireBatch encodes a batch of records with the offset deltas given, as a broker would send it.
func wireBatch(t testing.TB, base int64, codec wire.Codec, deltas []int32, values [][]byte, change func(*wire.Header)) []byte {
	t.Helper()
	var recs []byte
	for i, d := range deltas {
		recs = wire.AppendRecord(recs, d, nil, values[i], []byte{0})
	}
	last := int32(0)
	if len(deltas) > 0 {
		last = deltas[len(deltas)-1]
	}
	if codec != wire.None {
		z, err := wire.NewCompressor(codec)
		assert.OK(t, err)
		recs, err = z.Append(nil, recs)
		assert.OK(t, err)
	}
	h := wire.Header{
		BaseOffset: base, Length: int32(wire.HeaderSize + len(recs) - 12), Attributes: int16(codec), LastOffsetDelta: last,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, NumRecords: int32(len(deltas)),
	}
	if change != nil {
		change(&h)
	}
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(recs))
	h.Put(b)
	b = append(b, recs...)
	h.CRC = wire.UpdateCRC(0, b[21:])
	h.Put(b)
	return b
}

func dense(n int) []int32 {
	d := make([]int32, n)
	for i := range d {
		d[i] = int32(i)
	}
	return d
}

func values(n, size int) [][]byte {
	v := make([][]byte, n)
	for i := range v {
		v[i] = make([]byte, size)
	}
	return v
}

func TestDecoderCountsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	type piece struct {
		Base   int64
		Events int32
		Bytes  int64
	}
	plain := wireBatch(t, 100, wire.None, dense(10), values(10, 7), nil)
	packed := wireBatch(t, 100, wire.Zstd, dense(10), values(10, 7), nil)
	// Compaction keeps the offset range of a batch and removes records in it.
	compacted := wireBatch(t, 100, wire.None, []int32{2, 3, 9}, values(3, 7), nil)
	for _, tt := range []struct {
		name       string
		records    []byte
		from, end  int64
		decode     bool
		want       []piece
		next       int64
		skipsWhole bool
	}{
		{name: "whole", records: plain, from: 100, end: 1000, want: []piece{{100, 10, 70}}, next: 110},
		{name: "from the middle", records: plain, from: 104, end: 1000, want: []piece{{104, 6, 42}}, next: 110},
		{name: "up to the middle", records: plain, from: 100, end: 103, want: []piece{{100, 3, 21}}, next: 110},
		{name: "compressed", records: packed, from: 100, end: 1000, want: []piece{{100, 10, -1}}, next: 110},
		{name: "compressed, from the middle", records: packed, from: 107, end: 1000, want: []piece{{107, 3, 21}}, next: 110},
		{name: "compressed, decoded", records: packed, from: 100, end: 1000, decode: true, want: []piece{{100, 10, 70}}, next: 110},
		{name: "compacted", records: compacted, from: 100, end: 1000, want: []piece{{100, 3, 21}}, next: 110},
		{name: "compacted, from the middle", records: compacted, from: 103, end: 1000, want: []piece{{103, 2, 14}}, next: 110},
		{name: "before what was asked for", records: plain, from: 200, end: 1000, next: 200},
		{name: "two batches and a part of a third", records: bytes.Join([][]byte{plain, wireBatch(t, 110, wire.None, dense(2), values(2, 1), nil), plain[:70]}, nil), from: 100, end: 1000, want: []piece{{100, 10, 70}, {110, 2, 2}}, next: 112},
		{name: "control", records: wireBatch(t, 100, wire.None, dense(1), values(1, 4), func(h *wire.Header) { h.Attributes |= wire.AttrControl }), from: 100, end: 1000, next: 101},
		{name: "nothing", from: 100, end: 1000, next: 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := decoder{decode: tt.decode, check: tt.decode}
			p := &part{offset: tt.from, end: tt.end}
			got := assert.Value(d.appendArrivals(p, &wire.FetchPartition{Records: tt.records}, time.Second, nil))(t)
			var pieces []piece
			for _, a := range got {
				pieces = append(pieces, piece{a.Base, a.Events, a.Bytes})
				assert.True(t, !a.Corrupt, "the arrival at offset %d is marked corrupt", a.Base)
			}
			assert.Same(t, pieces, tt.want, "arrivals")
			assert.Equal(t, p.offset, tt.next, "next offset")
		})
	}
}

func TestDecoderFindsCorruption(t *testing.T) {
	t.Parallel()
	for _, codec := range []wire.Codec{wire.None, wire.Gzip, wire.LZ4} {
		b := wireBatch(t, 5, codec, dense(10), values(10, 50), nil)
		b[len(b)-9] ^= 4
		for _, check := range []bool{true, false} {
			d := decoder{decode: check, check: check}
			got := assert.Value(d.appendArrivals(&part{offset: 5, end: 100}, &wire.FetchPartition{Records: b}, 1, nil))(t)
			assert.True(t, len(got) == 1 && got[0].Events == 10 && got[0].Corrupt == check,
				"%s, checked %v: got %+v, want one arrival of 10 events, corrupt %v", codec, check, got, check)
		}
	}
}

func TestDecoderReadsStamps(t *testing.T) {
	t.Parallel()
	vs := values(3, 40)
	for i, v := range vs {
		s := wire.Stamp{Run: 9, Stream: 2, Index: uint64(i)}
		s.Put(v)
	}
	vs[2][3] ^= 1
	d := decoder{decode: true, check: true, stamps: true}
	got, err := d.appendArrivals(&part{offset: 10, end: 100}, &wire.FetchPartition{Records: wireBatch(t, 10, wire.None, dense(3), vs, nil)}, 1, nil)
	assert.OK(t, err)
	want := []load.Stamp{
		{Run: 9, Stream: 2, Index: 0, Offset: 10},
		{Run: 9, Stream: 2, Index: 1, Offset: 11},
		{Bad: true, Offset: 12},
	}
	assert.Must(t, len(got) == 1 && len(got[0].Stamps) == 3, "got %+v, want one arrival with 3 stamps", got)
	// The other fields of a bad stamp have no meaning.
	got[0].Stamps[2] = load.Stamp{Bad: got[0].Stamps[2].Bad, Offset: got[0].Stamps[2].Offset}
	assert.Same(t, got[0].Stamps, want, "stamps")
}

func TestDecoderSkipsAborted(t *testing.T) {
	t.Parallel()
	of := func(pid int64, attrs int16) func(*wire.Header) {
		return func(h *wire.Header) {
			h.ProducerID, h.Attributes = pid, h.Attributes|wire.AttrTransactional|attrs
		}
	}
	marker := func(base, pid int64, kind byte) []byte {
		var recs []byte
		recs = wire.AppendRecord(recs, 0, []byte{0, 0, 0, kind}, make([]byte, 6), []byte{0})
		h := wire.Header{BaseOffset: base, Length: int32(wire.HeaderSize + len(recs) - 12), NumRecords: 1, BaseSequence: -1}
		of(pid, wire.AttrControl)(&h)
		b := make([]byte, wire.HeaderSize)
		h.Put(b)
		return append(b, recs...)
	}
	const abort, commit = 0, 1
	log := bytes.Join([][]byte{
		wireBatch(t, 0, wire.None, dense(5), values(5, 1), of(1, 0)),  // aborted
		wireBatch(t, 5, wire.None, dense(5), values(5, 1), of(2, 0)),  // committed
		wireBatch(t, 10, wire.None, dense(5), values(5, 1), of(1, 0)), // aborted
		marker(15, 1, abort), marker(16, 2, commit),
		wireBatch(t, 17, wire.None, dense(5), values(5, 1), of(1, 0)), // committed: the next transaction
		marker(22, 1, commit),
		wireBatch(t, 23, wire.None, dense(5), values(5, 1), of(3, 0)), // aborted, and overlaps the next
		wireBatch(t, 28, wire.None, dense(5), values(5, 1), of(1, 0)), // aborted
		marker(33, 1, abort), marker(34, 3, abort),
		wireBatch(t, 35, wire.None, dense(5), values(5, 1), nil),
	}, nil)
	aborted := []wire.AbortedTransaction{{ProducerID: 1}, {ProducerID: 1, FirstOffset: 28}, {ProducerID: 3, FirstOffset: 23}} // in the order of their ends
	for _, committed := range []bool{true, false} {
		d := decoder{committed: committed}
		p := &part{end: 1000}
		got := assert.Value(d.appendArrivals(p, &wire.FetchPartition{Records: log, Aborted: aborted}, 1, nil))(t)
		var bases []int64
		for _, a := range got {
			bases = append(bases, a.Base)
		}
		want := []int64{0, 5, 10, 17, 23, 28, 35}
		if committed {
			want = []int64{5, 17, 35}
		}
		assert.Same(t, bases, want, "committed %v", committed)
		assert.Equal(t, p.offset, 40, "next offset")
	}
}

// FuzzDecoder checks that no record set makes the decoder panic, count a negative number
// of events, or move the offset back.
func FuzzDecoder(f *testing.F) {
	f.Add(wireBatch(f, 3, wire.None, dense(3), values(3, 30), nil), int64(3), true)
	f.Add(wireBatch(f, 3, wire.Snappy, dense(3), values(3, 30), nil), int64(4), false)
	f.Add([]byte{1, 2, 3}, int64(0), true)
	f.Fuzz(func(t *testing.T, records []byte, from int64, decode bool) {
		from = max(0, from) % (1 << 40)
		p := &part{offset: from, end: 1 << 62}
		d := decoder{decode: decode, check: decode, stamps: decode, committed: !decode}
		got, err := d.appendArrivals(p, &wire.FetchPartition{Records: records, Aborted: []wire.AbortedTransaction{{FirstOffset: from}}}, 1, nil)
		assert.Must(t, p.offset >= from, "the offset moved back from %d to %d", from, p.offset)
		if err != nil {
			return
		}
		for _, a := range got {
			assert.Must(t, a.Events > 0 && a.Bytes >= -1, "got %+v", a)
		}
	})
}
