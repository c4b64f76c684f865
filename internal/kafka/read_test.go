package kafka

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/payload"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// filled returns a cluster whose topic "events" has n records of the size in each partition.
func filled(t testing.TB, partitions int32, n, size int, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c := eventsCluster(t, partitions, opts...)
	putEvents(t, c, records(n*int(partitions), int(partitions), sized(size)))
	return c
}

// putEvents writes records to the topic "events", in small batches.
func putEvents(t testing.TB, c *kfake.Cluster, recs []*kgo.Record, opts ...kgo.Opt) {
	t.Helper()
	put(t, c, recs, append([]kgo.Opt{kgo.DefaultProduceTopic("events"), kgo.ProducerBatchMaxBytes(4096)}, opts...)...)
}

func fireReads(t testing.TB, c *kfake.Cluster, p load.Plan, given map[string][]string) (*load.Result, protocol.Session) {
	t.Helper()
	s := spec(t, fakeURL(c.ListenAddrs()), given)
	s.Op = cluster.OpRead
	s.Clients = max(1, s.Options.Int("clients"))
	sess := assert.Value(open(t, s))(t)
	ctx := testkit.Minute(t)
	if n := sess.Target().Capabilities().Events; n > 0 {
		p.Gate = load.NewGate()
		p.Gate.Add(n)
		p.Gate.Close()
	}
	r := assert.Value(load.Fire(ctx, p, sess.Target()))(t)
	return r, sess
}

// answerFetch answers every partition of a fetch request with an error.
func answerFetch(req *kmsg.FetchRequest, code int16) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	for _, rt := range req.Topics {
		st := kmsg.NewFetchResponseTopic()
		st.Topic, st.TopicID = rt.Topic, rt.TopicID
		for _, rp := range rt.Partitions {
			sp := kmsg.NewFetchResponseTopicPartition()
			sp.Partition, sp.ErrorCode = rp.Partition, code
			st.Partitions = append(st.Partitions, sp)
		}
		resp.Topics = append(resp.Topics, st)
	}
	return resp
}

// TestReadSuite: reading records does what the core requires of every target.
func TestReadSuite(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	c := filled(t, 3, 400, 100, kfake.NumBrokers(2))
	var refused atomic.Bool
	var slow answerDelay
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		slow.wait()
		if refused.Load() {
			return answerFetch(req.(*kmsg.FetchRequest), kerr.TopicAuthorizationFailed.Code), nil, true
		}
		return nil, nil, false
	})
	protocoltest.Run(t, protocoltest.System{
		Kind: Kind{}, URL: fakeURL(c.ListenAddrs()), Op: cluster.OpRead, Options: map[string]string{"recycle": "true"},
		Slow: slow.set, Refuse: refused.Store, RefuseWant: load.Unauthorized,
	})
}

// Without recycling, a run reads every record once, in batches of any size, compressed or not, and ends.
func TestReadsEveryRecordOnce(t *testing.T) {
	t.Parallel()
	const each, partitions = 700, 3
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.ZstdCompression()} {
		c := eventsCluster(t, partitions, kfake.NumBrokers(2))
		putEvents(t, c, records(each*partitions, partitions, func(i int) *kgo.Record {
			return &kgo.Record{Key: fmt.Append(nil, i), Value: make([]byte, i%300)}
		}), kgo.ProducerBatchCompression(codec))
		var want int64
		for i := range each * partitions {
			want += int64(len(fmt.Sprint(i)) + i%300)
		}
		for name, tt := range map[string]struct {
			plan  load.Plan
			given map[string][]string
		}{
			"one by one":      {load.Plan{Concurrency: 8, BatchEvents: 1}, nil},
			"full speed":      {load.Plan{}, nil},
			"several clients": {load.Plan{Concurrency: 4, BatchEvents: 7}, map[string][]string{"clients": {"3"}}},
			"small answers":   {load.Plan{BatchEvents: 500}, map[string][]string{"fetch-partition-max": {"1KiB"}}},
			"schedule":        {load.Plan{Schedule: load.Constant(20_000)}, nil},
			"checked":         {load.Plan{BatchEvents: 100}, map[string][]string{"decode": {"true"}}},
		} {
			var mu sync.Mutex
			seen := map[int64]int{}
			tt.plan.Observe = func(out []load.Outcome) {
				mu.Lock()
				defer mu.Unlock()
				for _, o := range out {
					for i := range int64(o.Events) {
						seen[o.Place+i]++
					}
				}
			}
			r, _ := fireReads(t, c, tt.plan, tt.given)
			assert.True(t, r.Stopped == load.ByFeed && r.Measurement.Acked == each*partitions && int64(r.Measurement.AckedBytes) == want && int64(r.Measurement.Bytes) == want,
				"%s: stopped by %q, %d acked of %d bytes (%d in all), want %d of %d: %v", name, r.Stopped, r.Measurement.Acked, r.Measurement.AckedBytes, r.Measurement.Bytes, each*partitions, want, r.Failures)
			for offset, n := range seen {
				assert.Must(t, n == partitions, "%s: offset %d was read %d times in %d partitions", name, offset, n, partitions)
			}
		}
	}
}

// Reads of what is not there, or is altered, fail for certain and at once, and have a reason.
func TestReadFails(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	t.Run("deleted while it reads", func(t *testing.T) {
		c := filled(t, 1, 100, 50)
		s := spec(t, fakeURL(c.ListenAddrs()), nil)
		s.Op = cluster.OpRead
		sess := assert.Value(open(t, s))(t)
		cl := assert.Value(kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...)))(t)
		defer cl.Close()
		offsets := kadm.Offsets{}
		offsets.Add(kadm.Offset{Topic: "events", Partition: 0, At: 60})
		assert.Value(kadm.NewClient(cl).DeleteRecords(t.Context(), offsets))(t)
		r := assert.Value(load.Fire(t.Context(), load.Plan{BatchEvents: 1, Measurement: load.Limits{Events: 100}}, sess.Target()))(t)
		assert.True(t, r.Measurement.Acked == 40 && r.Measurement.Counts.Failed == 60 && r.Classes["rejected"] == 60,
			"%d acked, %d failed, %v; want 40, and 60 rejected", r.Measurement.Acked, r.Measurement.Counts.Failed, r.Failures)
	})
	t.Run("no topic", func(t *testing.T) {
		c := eventsCluster(t, 1)
		s := spec(t, strings.Replace(fakeURL(c.ListenAddrs()), "events", "absent", 1), nil)
		s.Op = cluster.OpRead
		_, err := open(t, s)
		assert.True(t, err != nil && strings.Contains(err.Error(), "absent") && strings.Contains(err.Error(), "does not exist"), "a missing topic: %v", err)
	})
	t.Run("no records", func(t *testing.T) {
		c := eventsCluster(t, 1)
		s := spec(t, fakeURL(c.ListenAddrs()), nil)
		s.Op = cluster.OpRead
		_, err := open(t, s)
		assert.ErrorHas(t, err, "nothing can be read", "an empty topic")
	})
}

// While leaders move and connections are lost, every read succeeds in the end.
func TestReadFollowsLeaders(t *testing.T) {
	t.Parallel()
	c := filled(t, 4, 500, 50, kfake.NumBrokers(3))
	var asked atomic.Int64
	move, enough, moved := make(chan int32, 100), make(chan struct{}), make(chan struct{})
	go func() { // not in the control function, which the cluster waits for
		defer close(moved)
		for {
			select {
			case p := <-move:
				err := c.MoveTopicPartition("events", p, (c.LeaderFor("events", p)+1)%3)
				assert.True(t, err == nil, "%v", err)
			case <-enough:
				return
			}
		}
	}()
	c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		switch n := asked.Add(1); {
		case n%97 == 0:
			return nil, errors.New("the test closes this connection"), true
		case n%50 == 0:
			select {
			case move <- int32(n / 50 % 4):
			default:
			}
		}
		return nil, nil, false
	})
	r, sess := fireReads(t, c, load.Plan{Concurrency: 6, BatchEvents: 3, Drain: time.Minute}, map[string][]string{"fetch-wait": {"50ms"}})
	close(enough)
	<-moved
	assert.Equal(t, r.Measurement.Acked, 2000, "records read: %v", r.Failures)
	assert.True(t, sess.Facts()["reads_retried"] != nil, "no read was retried, so nothing was tested")
}

// An answer may begin before the records, end in the middle of them, have gaps, or be altered.
func TestFindsRecords(t *testing.T) {
	batches := func(codec wire.Codec, change func(*wire.Header)) []byte {
		b := wireBatch(t, 0, codec, dense(10), values(10, 8), change)
		b = append(b, wireBatch(t, 10, codec, []int32{0, 4, 9}, values(3, 8), nil)...) // compacted
		return append(b, wireBatch(t, 20, codec, dense(10), values(10, 8), nil)...)
	}
	control := func(h *wire.Header) { h.Attributes |= wire.AttrControl }
	plain := batches(wire.None, nil)
	for _, tt := range []struct {
		name     string
		from, to int64
		records  []byte
		decode   bool
		want     itemsFound
	}{
		{"all", 0, 30, plain, false, itemsFound{next: 30, n: 23, bytes: 23 * 8}},
		{"from the middle", 5, 30, plain, false, itemsFound{next: 30, n: 18, bytes: 18 * 8}},
		{"to the middle", 0, 5, plain, true, itemsFound{next: 5, n: 5, bytes: 5 * 8}},
		{"one", 14, 15, plain, false, itemsFound{next: 15, n: 1, bytes: 8}},
		{"a gap", 11, 14, plain, false, itemsFound{next: 14}},
		{"compressed", 3, 22, batches(wire.LZ4, nil), false, itemsFound{next: 22, n: 12, bytes: 12 * 8}},
		{"cut off", 0, 30, plain[:len(plain)-1], false, itemsFound{next: 20, n: 13, bytes: 13 * 8}},
		{"a transaction marker", 0, 20, batches(wire.None, control), false, itemsFound{next: 20, n: 3, bytes: 3 * 8}},
		{"nothing yet", 30, 31, nil, false, itemsFound{next: 30}},
		{"altered", 0, 30, altered(plain, 70), true, itemsFound{next: 30, n: 13, bytes: 13 * 8, corrupt: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := &readLink{c: &readClient{r: &itemReader{cfg: &cluster.Config{Decode: tt.decode}}}}
			got := itemsFound{next: tt.from}
			assert.OK(t, k.find(&itemRead{next: tt.from, to: tt.to}, tt.records, &got))
			assert.Equal(t, got, tt.want, "found")
		})
	}
}

func altered(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 1
	return b
}

// Whatever a broker sends, no more records are found than were asked for.
func FuzzFindRecords(f *testing.F) {
	f.Add(wireBatch(f, 5, wire.None, dense(10), values(10, 8), nil), int64(7), int64(12))
	f.Add(wireBatch(f, 0, wire.Snappy, dense(3), values(3, 100), nil), int64(0), int64(3))
	f.Add(wireBatch(f, 0, wire.None, []int32{0, 0, 0}, values(3, 8), nil), int64(0), int64(1))
	f.Fuzz(func(t *testing.T, records []byte, from, to int64) {
		if from < 0 || to <= from || to > 1<<40 {
			return
		}
		k := &readLink{c: &readClient{r: &itemReader{cfg: &cluster.Config{}}}}
		got := itemsFound{next: from}
		if err := k.find(&itemRead{next: from, to: to}, records, &got); err != nil {
			return
		}
		assert.True(t, got.next >= from && got.next <= to && int64(got.n) <= got.next-from && got.n >= 0 && got.bytes >= 0,
			"of the offsets from %d to %d: %+v", from, to, got)
	})
}

// TestChecksValues: values that a run sent as pieces of a ring are right, those of others are
// not, and are not in the list of what was read.
func TestChecksValues(t *testing.T) {
	t.Parallel()
	const events, numbers = 500, "${math:absInt64(int64:xorShift(this.last()) % 1000000)}%{7}"
	for name, tt := range map[string]struct{ key, codec, engine string }{
		"keys":       {"number(36," + numbers + ",n-)", "none", cluster.EngineWire},
		"no keys":    {"none", "none", cluster.EngineWire},
		"compressed": {"number(36," + numbers + ",n-)", "lz4", cluster.EngineWire},
		"client":     {"number(36," + numbers + ",n-)", "none", cluster.EngineClient},
	} {
		t.Run(name, func(t *testing.T) {
			c := eventsCluster(t, 2, kfake.NumBrokers(1))
			s := spec(t, fakeURL(c.ListenAddrs()), map[string][]string{
				"payload": {"ring(64KiB," + numbers + ",7a42d9c483244167)"}, "size": {"20-300"}, "key": {tt.key},
				"compression": {tt.codec}, "engine": {tt.engine}, "fresh": {"true"},
			})
			sess := assert.Value(open(t, s))(t)
			ctx := testkit.Minute(t)
			if r, err := load.Fire(ctx, load.Plan{BatchEvents: 9, Concurrency: 3, Measurement: load.Limits{Events: events}}, sess.Target()); err != nil || r.Measurement.Acked < events {
				t.Fatal(err, r)
			}
			names := ""
			if tt.key != "none" {
				names = "names(36,n-),"
			}
			list := filepath.Join(t.TempDir(), "list")
			check := map[string][]string{"check-values": {"ring(64KiB," + names + "7a42d9c483244167)"}, "items-out": {list}, "decode": {"true"}}
			r, _ := fireReads(t, c, load.Plan{BatchEvents: 50}, check)
			assert.Must(t, r.Measurement.Acked >= events && r.Measurement.Counts.Failed == 0,
				"%d read, %d failed: %v", r.Measurement.Acked, r.Measurement.Counts.Failed, r.Failures)
			good := r.Measurement.Acked
			// Another program's records, and one of ours with a bit changed.
			gen := assert.Value(payload.New(payload.Spec{Size: "100", Payload: "ring(64KiB," + numbers + ",7a42d9c483244167)"}))(t)
			altered := gen.AppendValue(nil, 3)
			altered[50] ^= 4
			putEvents(t, c, []*kgo.Record{
				{Key: []byte("n-1"), Value: []byte("another program's value")},
				{Key: []byte("other"), Value: altered},
				{Value: gen.AppendValue(nil, 3)}, // without a key, but of the ring
			})
			r, sess2 := fireReads(t, c, load.Plan{BatchEvents: 50}, check)
			if r.Measurement.Acked != good+1 || r.Measurement.Counts.Failed != 2 || r.Classes["protocol"] != 2 || !strings.Contains(fmt.Sprint(r.Failures), "its value is not the one that was sent") {
				t.Errorf("%d of %d read, %d failed: %v", r.Measurement.Acked, good+3, r.Measurement.Counts.Failed, r.Failures)
			}
			assert.OK(t, sess2.Capabilities().Finish())
			n := len(recordsIn(t, list))
			assert.True(t, uint64(n) == good+1, "%d records are listed, want the %d that were right", n, good+1)
		})
	}
}

// With a list, each record has the value of its own line, whatever the order and the batches are.
func TestChecksList(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 2)
	gen := assert.Value(payload.New(payload.Spec{Size: "10-90", Payload: "ring(1000,${this.last() + 1}%{-1},ff)"}))(t)
	putEvents(t, c, records(100, 2, func(i int) *kgo.Record { return &kgo.Record{Value: gen.AppendValue(nil, uint64(i))} }))
	var places, lines strings.Builder
	for i := 99; i >= 0; i-- { // record i is at offset i/2 of partition i%2
		fmt.Fprintf(&places, "%d,%d\n", i%2, i/2)
		size := gen.Size(uint64(i))
		if i == 17 {
			size--
		}
		fmt.Fprintf(&lines, "t/%d,%s,%d,0/0\n", i, strconv.FormatInt(int64(i), 16), size)
	}
	list := filepath.Join(t.TempDir(), "items.csv")
	assert.OK(t, os.WriteFile(list, []byte(lines.String()), 0o600))
	r, _ := fireReads(t, c, load.Plan{BatchEvents: 10, Measurement: load.Limits{Events: 200}}, map[string][]string{
		"items-in": {writeList(t, places.String())}, "check-values": {"ring(1000,list(" + list + "),ff)"}, "clients": {"2"}, "recycle": {"true"},
	})
	if n := r.Measurement.Acked + r.Measurement.Counts.Failed; n < 200 || r.Measurement.Counts.Failed < 1 || r.Measurement.Counts.Failed > 2+n/100 {
		t.Errorf("%d read, %d failed: %v; want one in a hundred to fail", r.Measurement.Acked, r.Measurement.Counts.Failed, r.Failures)
	}
	s := spec(t, fakeURL(c.ListenAddrs()), map[string][]string{"items-in": {writeList(t, "0,1\n")}, "check-values": {"ring(1000,list(" + list + "),ff)"}})
	s.Op = cluster.OpRead
	_, err := open(t, s)
	assert.ErrorHas(t, err, "the list of check-values has 100 items, and 1 are read", "another list")
}
