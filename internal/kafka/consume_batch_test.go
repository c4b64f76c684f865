package kafka

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/conn/socket"
	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
		z := assert.Value(wire.NewCompressor(codec))(t)
		recs = assert.Value(z.Append(nil, recs))(t)
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
			p := &partition{offset: tt.from, end: tt.end}
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
	for _, codec := range []wire.Codec{wire.None, wire.Gzip, wire.LZ4} {
		b := wireBatch(t, 5, codec, dense(10), values(10, 50), nil)
		b[len(b)-9] ^= 4
		for _, check := range []bool{true, false} {
			d := decoder{decode: check, check: check}
			got := assert.Value(d.appendArrivals(&partition{offset: 5, end: 100}, &wire.FetchPartition{Records: b}, 1, nil))(t)
			assert.True(t, len(got) == 1 && got[0].Events == 10 && got[0].Corrupt == check,
				"%s, checked %v: got %+v, want one arrival of 10 events, corrupt %v", codec, check, got, check)
		}
	}
}

func TestDecoderReadsStamps(t *testing.T) {
	vs := values(3, 40)
	for i, v := range vs {
		s := wire.Stamp{Run: 9, Stream: 2, Index: uint64(i)}
		s.Put(v)
	}
	vs[2][3] ^= 1
	d := decoder{decode: true, check: true, stamps: true}
	got := assert.Value(d.appendArrivals(&partition{offset: 10, end: 100}, &wire.FetchPartition{Records: wireBatch(t, 10, wire.None, dense(3), vs, nil)}, 1, nil))(t)
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
	of := func(pid int64, attrs int16) func(*wire.Header) {
		return func(h *wire.Header) { h.ProducerID, h.Attributes = pid, h.Attributes|wire.AttrTransactional|attrs }
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
		p := &partition{end: 1000}
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

// FuzzDecoder checks that no record set makes the decoder panic, count a negative number of events, or move the offset back.
func FuzzDecoder(f *testing.F) {
	f.Add(wireBatch(f, 3, wire.None, dense(3), values(3, 30), nil), int64(3), true)
	f.Add(wireBatch(f, 3, wire.Snappy, dense(3), values(3, 30), nil), int64(4), false)
	f.Add([]byte{1, 2, 3}, int64(0), true)
	f.Fuzz(func(t *testing.T, records []byte, from int64, decode bool) {
		from = max(0, from) % (1 << 40)
		p := &partition{offset: from, end: 1 << 62}
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

// TestFetcherReportsOwnDelay checks that the arrivals of a fetcher that reads late, or asks late, contain that delay.
func TestFetcherReportsOwnDelay(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the arrival time of answers is not known on this system")
	}
	const delay = 150 * time.Millisecond
	c := assert.Value(cluster.ParseConfig(spec(t, "kafka://127.0.0.1:1/t", nil)))(t)
	var got load.Arrival
	var handling time.Duration
	start := time.Now()
	src := &wireSource{
		Progress: cluster.NewProgress(nil, []int64{0}), cl: &cluster.Cluster{Config: c}, topics: []wire.Topic{{Name: "t"}}, lanes: make([]sync.Mutex, 1),
		now:  func() time.Duration { return time.Since(start) + time.Second },
		sink: func(_ int, as []load.Arrival) { got = as[0]; <-time.After(handling) },
	}
	st := newFetcher(src, fetcherKey{}, "127.0.0.1:1")
	st.version = 12
	p := &partition{id: 0, end: 1 << 62}
	st.added = []*partition{p}
	conn, broker := testkit.Pair(t)
	st.conn, st.in = conn, socket.NewStamped(conn)

	// cycle sends a request, makes the broker answer with three events while more remain,
	// waits, and handles the answer. It returns the fetcher's own delay.
	offset := int64(0)
	cycle := func(reading time.Duration, more int64) (own time.Duration) {
		t.Helper()
		assert.Must(t, st.takeAdded(), "nothing to read")
		assert.OK(t, st.ask(t.Context()))
		answer := kmsg.NewPtrFetchResponse()
		answer.SetVersion(st.version)
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic = "t"
		fp := kmsg.NewFetchResponseTopicPartition()
		b := batchOf(3)
		binary.BigEndian.PutUint64(b, uint64(offset))
		offset += 3
		fp.HighWatermark, fp.RecordBatches = offset+more, b
		topic.Partitions = append(topic.Partitions, fp)
		answer.Topics = append(answer.Topics, topic)
		body := answer.AppendTo([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0})
		binary.BigEndian.PutUint32(body, uint32(len(body)-4))
		binary.BigEndian.PutUint32(body[4:], uint32(st.corr))
		assert.Value(broker.Write(body))(t)
		<-time.After(reading)
		frame := assert.Value(st.answer())(t)
		assert.Value(st.handle(frame))(t)
		return got.At - got.Earliest
	}
	for st.in.Arrived(0, src.now()) == 0 { // the kernel starts to report it a moment after it was asked to
		cycle(0, 0)
		assert.Must(t, time.Since(start) <= time.Minute, "the kernel never reports when an answer arrived")
	}
	own := cycle(delay, 0)
	assert.True(t, own >= delay && got.Earliest > 0, "read %v late: got an own delay of %v", delay, own)
	cycle(0, 0)
	handling = delay
	cycle(0, 0)
	handling = 0
	own = cycle(0, 3)
	assert.True(t, own >= delay, "asked %v late: got an own delay of %v", delay, own)
	own = cycle(0, 0)
	assert.True(t, own >= delay, "the rest after an answer %v late has a delay of %v", delay, own)
	assert.Equal(t, st.parts[0].ownDelay, 0, "own delay after it caught up")
}

// batchOf is a record batch of n empty records.
func batchOf(n int32) []byte {
	var recs []byte
	for i := range n {
		recs = wire.AppendRecord(recs, i, nil, []byte("v"), []byte{0})
	}
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(recs))
	h := wire.Header{Length: int32(wire.HeaderSize + len(recs) - 12), LastOffsetDelta: n - 1, ProducerID: -1, NumRecords: n}
	h.Put(b)
	wire.Seal(b, wire.SumOf(recs))
	return append(b, recs...)
}

// A fetcher delivers the valid part of an answer before an error in it, since the partition is read from behind it later.
func TestFetcherDeliversBeforeAnError(t *testing.T) {
	t.Parallel()
	c := assert.Value(cluster.ParseConfig(spec(t, "kafka://127.0.0.1:1/t", nil)))(t)
	delivered := 0
	src := &wireSource{
		Progress: cluster.NewProgress(nil, []int64{0}), cl: &cluster.Cluster{Config: c}, topics: []wire.Topic{{Name: "t"}}, lanes: make([]sync.Mutex, 1),
		sink: func(_ int, as []load.Arrival) {
			for _, a := range as {
				delivered += int(a.Events)
			}
		},
		now: func() time.Duration { return 1 },
	}
	st := newFetcher(src, fetcherKey{}, "127.0.0.1:1")
	st.version = 12
	p := &partition{id: 0, end: 1 << 62}
	st.parts = []*partition{p}
	answer := kmsg.NewPtrFetchResponse()
	answer.SetVersion(st.version)
	topic := kmsg.NewFetchResponseTopic()
	topic.Topic = "t"
	for _, id := range []int32{0, 7} { // 7 was not asked for
		fp := kmsg.NewFetchResponseTopicPartition()
		fp.Partition, fp.HighWatermark, fp.RecordBatches = id, 3, batchOf(3)
		topic.Partitions = append(topic.Partitions, fp)
	}
	answer.Topics = append(answer.Topics, topic)
	_, err := st.handle(answer.AppendTo([]byte{0}))
	assert.True(t, err != nil, "got no error for a partition that was not asked for")
	assert.True(t, delivered == 3 && p.offset == 3 && src.Next(0) == 3,
		"got %d events delivered, offset %d, delivered offset %d, want 3 each", delivered, p.offset, src.Next(0))
}

// A broker that does not answer must not delay the end of a run.
func TestFetcherEndsWhileABrokerIsSilent(t *testing.T) {
	t.Parallel()
	l := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	c := assert.Value(cluster.ParseConfig(spec(t, "kafka://"+l.Addr().String()+"/t", nil)))(t)
	st := newFetcher(&wireSource{cl: &cluster.Cluster{Config: c}, lanes: make([]sync.Mutex, 1)}, fetcherKey{}, l.Addr().String())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- st.connect(ctx) }()
	conn := assert.Value(l.Accept())(t)
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 64)); err != nil { // the request
		t.Fatal(err)
	}
	cancel()
	assert.True(t, testkit.Wait(t, "the fetcher's end", done) != nil, "got no error")
	if st.conn != nil {
		st.conn.Close()
	}
}

// After a large answer, a fetcher gives its memory back once answers are small again; not
// while there are large ones now and then.
func TestFetcherShrinks(t *testing.T) {
	const large = 8 << 20
	for _, tt := range []struct {
		name    string
		answers func(i int) int // sizes in bytes
		want    bool
	}{
		{"small ones", func(int) int { return 1000 }, true},
		{"large ones now and then", func(i int) int {
			if i%(shrinkAfter/2) == 0 {
				return large / 2
			}
			return 1000
		}, false},
		{"half of it", func(int) int { return large / 2 }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := &fetcher{buf: make([]byte, large)}
			st.decoder.marks = make([]load.Stamp, 0, 1000)
			for i := range 2 * shrinkAfter {
				st.shrink(tt.answers(i))
			}
			assert.Equal(t, st.buf == nil && st.decoder.marks == nil, tt.want, "given back")
		})
	}
	st := &fetcher{buf: make([]byte, leastAnswer)}
	for range 2 * shrinkAfter {
		st.shrink(100)
	}
	assert.True(t, st.buf != nil, "a buffer of the least size was given back")
}

func sample(t *testing.T, c *kfake.Cluster, topic string, given map[string][]string, w SampleWork) (*SampleResult, map[int32]int, error) {
	t.Helper()
	s := spec(t, urlOf(c, topic), given)
	w.URL, w.Options, w.Given, w.Logf = s.URL, s.Options, s.Given, t.Logf
	found := map[int32]int{}
	w.Batch = func(partition int32, b *wire.Batch, records []byte, from, to int64) {
		err := wire.ForEachRecord(records, b.NumRecords, func(r *wire.Record) error {
			if offset := b.BaseOffset + int64(r.OffsetDelta); offset >= from && offset < to {
				found[partition]++
			}
			return nil
		})
		assert.True(t, err == nil, "%v", err)
	}
	ctx := testkit.Minute(t)
	r, err := Sample(ctx, w)
	return r, found, err
}

func TestSampleReadsATopic(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(3, "t"), kfake.SeedTopics(1, "empty"))
	put(t, c, records(3000, 3, sized(100)), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	for _, test := range []struct {
		name, topic string
		given       map[string][]string
		count       uint64
		want        int
		whole       bool
	}{
		{"all", "t", nil, 0, 3000, true},
		{"a part", "t", nil, 700, 700, false},
		{"as many as there are", "t", nil, 3000, 3000, true},
		{"from an offset", "t", map[string][]string{"from": {"400"}}, 0, 1800, false},
		{"an empty topic", "empty", nil, 0, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, found, err := sample(t, c, test.topic, test.given, SampleWork{Count: test.count})
			assert.OK(t, err)
			got := 0
			for _, n := range found {
				got += n
			}
			assert.True(t, got == test.want && r.Read == uint64(test.want) && r.Whole == test.whole && !r.Interrupted,
				"got %d records, %+v, want %d, whole %v", got, r, test.want, test.whole)
		})
	}
}

func TestSampleOfNewRecords(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	put(t, c, records(10, 1, sized(100)))
	r, found, err := sample(t, c, "t", map[string][]string{"from": {"latest"}}, SampleWork{For: 300 * time.Millisecond})
	assert.True(t, err == nil && found[0] == 0 && !r.Whole && !r.Interrupted,
		"got %v, %d records and %+v, want none, and not everything", err, found[0], r)
}

func TestSampleRefuses(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	c := fakeCluster(t)
	_, _, err := sample(t, c, "missing", nil, SampleWork{})
	assert.True(t, err != nil && strings.Contains(err.Error(), "does not exist") && !errors.Is(err, context.Canceled),
		"got %v, want that the topic does not exist", err)
	assert.True(t, c.TopicInfo("missing") == nil, "reading a missing topic created it")
}
