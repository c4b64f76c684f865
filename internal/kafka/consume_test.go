package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// put writes records in order with a plain franz-go client, and returns the number of bytes of their keys, values and headers.
func put(t testing.TB, c *kfake.Cluster, recs []*kgo.Record, opts ...kgo.Opt) (bytes int64) {
	t.Helper()
	cl := assert.Value(kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic("t"),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(time.Millisecond),
	}, opts...)...))(t)
	defer cl.Close()
	assert.OK(t, cl.ProduceSync(t.Context(), recs...).FirstErr())
	for _, r := range recs {
		bytes += eventSize(r)
	}
	return bytes
}

func eventSize(r *kgo.Record) int64 {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return int64(n)
}

func records(n, partitions int, f func(i int) *kgo.Record) []*kgo.Record {
	recs := make([]*kgo.Record, n)
	for i := range recs {
		recs[i] = f(i)
		recs[i].Partition = int32(i % partitions)
	}
	return recs
}

func sized(n int) func(int) *kgo.Record {
	return func(int) *kgo.Record { return &kgo.Record{Value: make([]byte, n)} }
}

// read is what a source delivered.
type read struct {
	events  int
	bytes   int64 // of the arrivals whose size is known
	unsized int   // arrivals whose size is not known
	corrupt int
	per     map[int32]int
	spans   map[int32][]int64 // base offsets in the order of delivery
	stamps  int
}

// drain receives from a source until it returns, or until the function until reports true.
func drain(t testing.TB, src load.Source, until func(*read) bool) *read {
	t.Helper()
	return drainFor(t, 20*time.Second, src, until)
}

func drainFor(t testing.TB, most time.Duration, src load.Source, until func(*read) bool) *read {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	var mu sync.Mutex
	got := &read{per: map[int32]int{}, spans: map[int32][]int64{}}
	start := time.Now()
	busy := make([]sync.Mutex, src.Lanes())
	err := src.Receive(ctx, func() time.Duration { return time.Since(start) }, func(lane int, as []load.Arrival) {
		if !busy[lane].TryLock() {
			t.Errorf("lane %d makes two deliveries at the same time", lane)
			return
		}
		defer busy[lane].Unlock()
		mu.Lock()
		defer mu.Unlock()
		for _, a := range as {
			assert.True(t, a.Events > 0 && a.At > 0, "an arrival without events or time: %+v", a)
			got.events += int(a.Events)
			got.per[a.Log] += int(a.Events)
			got.spans[a.Log] = append(got.spans[a.Log], a.Base)
			got.stamps += len(a.Stamps)
			if a.Bytes < 0 {
				got.unsized++
			} else {
				got.bytes += a.Bytes
			}
			if a.Corrupt {
				got.corrupt++
			}
		}
		if until != nil && until(got) {
			cancel()
		}
	})
	assert.True(t, err == nil || (until != nil && errors.Is(err, context.Canceled)), "receive: %v", err)
	for log, bases := range got.spans {
		for i := 1; i < len(bases); i++ {
			assert.True(t, bases[i] > bases[i-1], "log %d: offset %d was delivered after %d", log, bases[i], bases[i-1])
		}
	}
	return got
}

func source(t testing.TB, c *kfake.Cluster, given map[string][]string) load.Source {
	t.Helper()
	s := spec(t, urlOf(c, "t"), given)
	s.Op = cluster.OpConsume
	sess := assert.Value(open(t, s))(t)
	return sess.Source()
}

func TestConsumeToTheEnd(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	keyed := func(i int) *kgo.Record {
		return &kgo.Record{
			Key: []byte(fmt.Sprint("k", i)), Value: []byte(strings.Repeat("v", i%700)),
			Headers: []kgo.RecordHeader{{Key: "h", Value: []byte(fmt.Sprint(i))}, {Key: "empty"}},
		}
	}
	for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
		for _, tt := range []struct {
			name  string
			n     int
			make  func(int) *kgo.Record
			opt   kgo.CompressionCodec
			given map[string][]string
			sized bool
		}{
			{name: "fixed size", n: 5000, make: sized(100), opt: kgo.NoCompression(), sized: true},
			{name: "keys and headers", n: 2000, make: keyed, opt: kgo.NoCompression(), sized: true},
			{name: "compressed", n: 2000, make: keyed, opt: kgo.ZstdCompression(), sized: engine == cluster.EngineClient},
			{name: "compressed, decoded", n: 2000, make: keyed, opt: kgo.GzipCompression(), given: map[string][]string{"decode": {"true"}}, sized: true},
			{name: "lz4, decoded", n: 2000, make: keyed, opt: kgo.Lz4Compression(), given: map[string][]string{"decode": {"true"}}, sized: true},
			{name: "snappy, decoded", n: 2000, make: keyed, opt: kgo.SnappyCompression(), given: map[string][]string{"decode": {"true"}}, sized: true},
			{name: "one client of three", n: 1000, make: sized(10), opt: kgo.NoCompression(), given: map[string][]string{"clients": {"3"}}, sized: true},
			{name: "small answers", n: 3000, make: sized(100), opt: kgo.NoCompression(), given: map[string][]string{"fetch-partition-max": {"1000"}, "fetch-max": {"3000"}}, sized: true},
		} {
			t.Run(engine+" "+tt.name, func(t *testing.T) {
				c := fakeCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(5, "t"))
				want := put(t, c, records(tt.n, 5, tt.make), kgo.ProducerBatchCompression(tt.opt), kgo.ProducerBatchMaxBytes(8<<10))
				given := map[string][]string{"engine": {engine}, "until-end": {"true"}}
				maps.Copy(given, tt.given)
				src := source(t, c, given)
				got := drain(t, src, nil)
				assert.Equal(t, got.events, tt.n, "events")
				assert.True(t, !tt.sized || got.bytes == want && got.unsized <= 0,
					"got %d bytes, and %d arrivals without a size, want %d bytes", got.bytes, got.unsized, want)
				assert.True(t, tt.sized || got.unsized != 0,
					"the size of a compressed batch that was only counted is known, want it unknown")
				assert.True(t, got.corrupt <= 0, "%d corrupt arrivals", got.corrupt)
				assert.Same(t, src.Lag(), make([]int64, 5), "lag")
				w, r := src.Wire()
				assert.True(t, w > 0 && r > 0, "got %d bytes written, %d read", w, r)
			})
		}
	}
}

func TestConsumeFrom(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	middle := time.Now().Add(-time.Hour).Truncate(time.Second)
	put(t, c, records(1000, 1, func(i int) *kgo.Record {
		at := middle.Add(-time.Minute)
		if i >= 600 {
			at = middle.Add(time.Minute)
		}
		return &kgo.Record{Value: []byte("v"), Timestamp: at}
	}), kgo.ProducerBatchMaxBytes(2048))
	for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
		for _, tt := range []struct {
			name, from string
			first      int64
			n          int
		}{
			{"earliest", "earliest", 0, 1000},
			{"offset in a batch", "333", 333, 667},
			{"offset beyond", "5000", -1, 0},
			{"time", middle.UTC().Format(time.RFC3339), 600, 400},
			{"latest", "latest", -1, 0},
		} {
			t.Run(engine+" "+tt.name, func(t *testing.T) {
				got := drain(t, source(t, c, map[string][]string{"engine": {engine}, "from": {tt.from}, "until-end": {"true"}}), nil)
				assert.Equal(t, got.events, tt.n, "events")
				if tt.n > 0 && got.spans[0][0] != tt.first {
					t.Errorf("the first arrival is at %d, want %d", got.spans[0][0], tt.first)
				}
			})
		}
	}
}

func TestConsumeFollowsLeaders(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(4, "t"))
	src := source(t, c, map[string][]string{"fetch-wait": {"50ms"}})
	const rounds, each = 6, 400
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range rounds {
			put(t, c, records(each, 4, sized(50)))
			for p := range int32(4) {
				err := c.MoveTopicPartition("t", p, (c.LeaderFor("t", p)+1+int32(i)%2)%3)
				assert.True(t, err == nil, "%v", err)
			}
		}
	}()
	got := drain(t, src, func(r *read) bool { return r.events >= rounds*each })
	<-done
	assert.Equal(t, got.events, rounds*each, "events")
	for p, n := range got.per {
		assert.Equal(t, n, rounds*each/4, "partition %d events", p)
	}
}

func TestConsumeOutlivesLostConnections(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(2, "t"))
	put(t, c, records(2000, 2, sized(100)), kgo.ProducerBatchMaxBytes(2000))
	n := 0
	c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if n++; n%3 == 1 {
			return nil, errors.New("the test closes this connection"), true
		}
		return nil, nil, false
	})
	got := drain(t, source(t, c, map[string][]string{"until-end": {"true"}, "fetch-partition-max": {"4000"}, "fetch-max": {"8000"}}), nil)
	assert.Equal(t, got.events, 2000, "events")
}

func TestConsumeWhatRetentionOvertook(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	put(t, c, records(1000, 1, sized(10)), kgo.ProducerBatchMaxBytes(1000))
	src := source(t, c, map[string][]string{"until-end": {"true"}})
	assert.OK(t, c.DeleteRecords("t", 0, 700))
	got := drain(t, src, nil)
	if got.events != 300 || got.spans[0][0] != 700 {
		t.Errorf("got %d events from offset %v, want 300 from 700", got.events, got.spans[0][:1])
	}
	w := src.(*wireSource).Warnings()
	assert.True(t, len(w) == 1 && strings.Contains(w[0], "out of its log's range"), "got warnings %q, want one about the range", w)
}

func TestConsumeGivesUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		err  *kerr.Error
	}{{"not authorised", kerr.TopicAuthorizationFailed}, {"corrupt", kerr.UnsupportedForMessageFormat}} {
		t.Run(tt.name, func(t *testing.T) {
			c := fakeCluster(t, kfake.SeedTopics(1, "t"))
			put(t, c, records(10, 1, sized(10)))
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "t", Err: tt.err, Count: 100})
			src := source(t, c, map[string][]string{"until-end": {"true"}})
			err := src.Receive(t.Context(), func() time.Duration { return 1 }, func(int, []load.Arrival) {})
			assert.True(t, errors.Is(err, tt.err), "got %v, want %v", err, tt.err)
		})
	}
}

// transactionsOf writes three transactions: committed, aborted, committed.
func transactionsOf(t *testing.T, c *kfake.Cluster, each int) {
	t.Helper()
	cl := assert.Value(kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("t"), kgo.TransactionalID("x"),
		kgo.RecordPartitioner(kgo.ManualPartitioner())))(t)
	defer cl.Close()
	for _, how := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		assert.OK(t, cl.BeginTransaction())
		assert.OK(t, cl.ProduceSync(t.Context(), records(each, 1, sized(10))...).FirstErr())
		assert.OK(t, cl.EndTransaction(t.Context(), how))
	}
}

func TestConsumeTransactions(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	transactionsOf(t, c, 100)
	for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
		for isolation, want := range map[string]int{"uncommitted": 300, "committed": 200} {
			t.Run(engine+" "+isolation, func(t *testing.T) {
				got := drain(t, source(t, c, map[string][]string{"engine": {engine}, "isolation": {isolation}, "until-end": {"true"}}), nil)
				assert.Equal(t, got.events, want, "events")
			})
		}
	}
}

func TestConsumeGroup(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(6, "t"))
	put(t, c, records(6000, 6, sized(20)))
	src := source(t, c, map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}, "clients": {"3"}, "until-end": {"true"}})
	got := drain(t, src, nil)
	assert.Equal(t, got.events, 6000, "events")
	assert.True(t, src.Rebalancing() > 0, "no time without an assignment, although joining a group takes time")
	// Members without a partition have their assignment, too.
	many := source(t, c, map[string][]string{"engine": {cluster.EngineClient}, "group": {"many"}, "clients": {"9"}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	received := make(chan error, 1)
	began := time.Now()
	go func() {
		received <- many.Receive(ctx, func() time.Duration { return time.Since(began) }, func(int, []load.Arrival) {})
	}()
	for before := time.Duration(-1); ; { // until the time without an assignment stops growing
		without := many.Rebalancing()
		if without == before && without > 0 {
			break
		}
		before = without
		if time.Since(began) > time.Minute {
			t.Errorf("%v without an assignment, as if members without partitions counted as unassigned", without)
			break
		}
		<-time.After(300 * time.Millisecond)
	}
	cancel()
	err := <-received
	assert.Must(t, errors.Is(err, context.Canceled), "%v", err)
	// A group that has read everything ends at once.
	done := source(t, c, map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}, "until-end": {"true"}})
	got = drain(t, done, nil)
	assert.True(t, got.events == 0, "the group got %d events again", got.events)
	// What was committed is not delivered again.
	put(t, c, records(60, 6, sized(20)))
	again := source(t, c, map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}})
	got = drain(t, again, func(r *read) bool { return r.events >= 60 })
	assert.True(t, got.events == 60, "the group's second run got %d events, want 60", got.events)
}

// TestEventBytes checks the size computed from the first record, and that computed from all records where they differ.
func TestEventBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var recs []byte
		n := rapid.IntRange(1, 300).Draw(t, "n")
		alike := rapid.Bool().Draw(t, "alike")
		headers := [][]byte{{0}, {2, 2, 'k', 2, 'v'}}[rapid.IntRange(0, 1).Draw(t, "headers")] // none, or k=v
		want := int64(0)
		size := rapid.IntRange(0, 300).Draw(t, "size")
		key := []byte(nil)
		if rapid.Bool().Draw(t, "keyed") {
			key = []byte("key")
		}
		for i := range n {
			if !alike {
				size = rapid.IntRange(0, 300).Draw(t, "size of one")
			}
			recs = wire.AppendRecord(recs, int32(i), key, make([]byte, size), headers)
			want += int64(len(key) + size)
			if len(headers) > 1 {
				want += 2
			}
		}
		got, err := eventBytes(recs, int32(n))
		assert.Must(t, err == nil && got == want, "got %d, %v, want %d", got, err, want)
	})
}

func FuzzEventBytes(f *testing.F) {
	f.Add(wire.AppendRecord(nil, 0, []byte("k"), []byte("v"), []byte{0}), int32(1))
	f.Add([]byte{0x80, 0x80, 0x80}, int32(5))
	f.Fuzz(func(t *testing.T, recs []byte, n int32) {
		got, err := eventBytes(recs, max(0, min(n, 1000)))
		assert.Must(t, err != nil || got >= 0 && got <= int64(len(recs)), "%d bytes of events in %d", got, len(recs))
	})
}
