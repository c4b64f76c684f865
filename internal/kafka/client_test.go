package kafka

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/franz"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func launch(t testing.TB, s protocol.Session, plan load.Plan) *load.Result {
	t.Helper()
	run := assert.Value(load.New(plan, s.Target()))(t)
	run.Start()
	res := assert.Value(run.Wait())(t)
	return res
}

func stored(t testing.TB, c *kfake.Cluster, opts ...kgo.Opt) []*kgo.Record {
	t.Helper()
	want := 0
	for _, p := range c.PartitionInfos("t") {
		want += int(p.HighWatermark)
	}
	cl := assert.Value(kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics("t"), kgo.KeepControlRecords()}, opts...)...))(t)
	defer cl.Close()
	var recs []*kgo.Record
	for seen := 0; seen < want; {
		fs := cl.PollFetches(t.Context())
		assert.OK(t, fs.Err())
		fs.EachRecord(func(r *kgo.Record) {
			seen++
			if !r.Attrs.IsControl() {
				recs = append(recs, r)
			}
		})
	}
	return recs
}

func TestClientProduce(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	const events = 3000
	for _, tt := range []struct {
		name  string
		given map[string][]string
		plan  load.Plan
		check func(t *testing.T, recs []*kgo.Record)
	}{
		{name: "defaults"},
		{name: "acks all, idempotent", given: map[string][]string{"idempotent": {"true"}}},
		{name: "profile java", given: map[string][]string{"profile": {"java"}}, check: func(t *testing.T, recs []*kgo.Record) {
			for _, r := range recs {
				assert.Must(t, r.ProducerID >= 0, "a record of an idempotent producer has no producer id")
			}
		}},
		{name: "one event a batch", plan: load.Plan{BatchEvents: 1}},
		{name: "two clients", given: map[string][]string{"clients": {"2"}}},
		{name: "keys, headers, zstd", given: map[string][]string{
			"key": {"uniform(50)"}, "header": {"a=b", "c=d"}, "compression": {"zstd"}, "partitioner": {"murmur2"}, "size": {"10-500"},
		}, check: func(t *testing.T, recs []*kgo.Record) {
			java := kgo.StickyKeyPartitioner(nil).ForTopic("t") // Kafka's default partitioner for keys
			for _, r := range recs {
				want := java.Partition(r, 3)
				assert.Must(t, int(r.Partition) == want, "key %q is in partition %d, want %d", r.Key, r.Partition, want)
				assert.Must(t, len(r.Headers) == 2 && r.Headers[1].Key == "c" && string(r.Headers[1].Value) == "d",
					"got headers %v", r.Headers)
			}
		}},
		{name: "fresh", given: map[string][]string{"fresh": {"true"}, "key": {"seq"}}, check: func(t *testing.T, recs []*kgo.Record) {
			seen := map[string]bool{}
			for _, r := range recs {
				assert.Must(t, !seen[string(r.Value)] && !seen[string(r.Key)], "an event was sent twice")
				seen[string(r.Value)], seen[string(r.Key)] = true, true
			}
		}},
		{name: "fixed partition", given: map[string][]string{"partitioner": {"fixed(2)"}}, check: func(t *testing.T, recs []*kgo.Record) {
			for _, r := range recs {
				assert.Must(t, r.Partition == 2, "a record is in partition %d", r.Partition)
			}
		}},
		{name: "scheduled", plan: load.Plan{Schedule: load.Constant(20000)}},
		{name: "concurrency", plan: load.Plan{Concurrency: 4, BatchEvents: 1, MaxInFlight: 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := fakeCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(3, "t"))
			given := map[string][]string{"engine": {cluster.EngineClient}}
			maps.Copy(given, tt.given)
			s := assert.Value(open(t, spec(t, urlOf(c, "t"), given)))(t)
			plan := tt.plan
			plan.Measurement.Events = events
			var mu sync.Mutex
			var out []load.Outcome
			plan.Observe = func(o []load.Outcome) {
				mu.Lock()
				out = append(out, o...)
				mu.Unlock()
			}
			res := launch(t, s, plan)
			assert.True(t, res.Measurement.Acked == events && res.Measurement.Sent == events,
				"got %d sent, %d acked, want %d", res.Measurement.Sent, res.Measurement.Acked, events)
			recs := stored(t, c)
			assert.Must(t, len(recs) == events, "%d records at the broker, want %d", len(recs), events)
			checkKeys(t, s.Target().(*franz.Producer), given["key"] != nil, out, recs)
			var bytes int64
			for _, r := range recs {
				bytes += eventSize(r)
			}
			assert.Equal(t, int64(res.Measurement.Bytes), bytes, "bytes of events")
			if tt.check != nil {
				tt.check(t, recs)
			}
		})
	}
}

// The client gives up a broker that does not answer after the request timeout, which
// franz-go applies twice: for the broker's work, and for the network.
func TestClientRequestTimeout(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	end := testEnd(t)
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		c.SleepControl(func() { <-end })
		return nil, nil, false
	})
	s := assert.Value(open(t, spec(t, urlOf(c, "t"), map[string][]string{"engine": {cluster.EngineClient}, "request-timeout": {"300ms"}, "delivery-timeout": {"1s"}})))(t)
	res := launch(t, s, load.Plan{Measurement: load.Limits{Events: 10}, Drain: time.Hour})
	assert.Equal(t, res.Measurement.Unknown, 10, "unknown")
	f := res.Failures
	assert.True(t, len(f) == 1 && f[0].Class == "timeout", "got %v, want a timeout", f)
}

// The client engine keeps to the bound on requests, too.
func TestClientKeepsToMaxRequest(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(6, "t"))
	var largest atomic.Int64
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		n := 0
		for _, rt := range req.(*kmsg.ProduceRequest).Topics {
			for _, rp := range rt.Partitions {
				n += len(rp.Records)
			}
		}
		largest.Store(max(largest.Load(), int64(n)))
		return nil, nil, false
	})
	sp := spec(t, urlOf(c, "t"), map[string][]string{"engine": {cluster.EngineClient}, "size": {"1000"}, "batch-size": {"10000"}, "max-request": {"20000"}})
	sp.Linger = 50 * time.Millisecond
	s := assert.Value(open(t, sp))(t)
	res := launch(t, s, load.Plan{Measurement: load.Limits{Events: 1000}})
	assert.Equal(t, res.Measurement.Acked, 1000, "acked")
	n := largest.Load()
	assert.True(t, n <= 20000 && n >= 2000, "the largest request has %d bytes of batches, want at most 20000", n)
}

func TestClientProduceWithoutAcks(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(2, "t"))
	s := assert.Value(open(t, spec(t, urlOf(c, "t"), map[string][]string{"engine": {cluster.EngineClient}, "acks": {"0"}})))(t)
	assert.True(t, s.Capabilities().Unanswered, "the session does not report that nothing is acknowledged")
	res := launch(t, s, load.Plan{Measurement: load.Limits{Events: 1000}, Unanswered: true})
	assert.True(t, res.Measurement.Sent == 1000 && res.Measurement.Unknown == 1000 && res.Measurement.Acked == 0,
		"got %d sent, %d unknown, %d acked, want 1000, 1000, 0", res.Measurement.Sent, res.Measurement.Unknown, res.Measurement.Acked)
}

func TestClientProduceFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		err   *kerr.Error
		given map[string][]string
		class load.Class
	}{
		{"too large", kerr.MessageTooLarge, nil, load.TooLarge},
		{"not authorised", kerr.TopicAuthorizationFailed, nil, load.Unauthorized},
		{"rejected", kerr.InvalidRecord, nil, load.Rejected},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := fakeCluster(t, kfake.SeedTopics(1, "t"))
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "t", Err: tt.err, Count: 1000})
			given := map[string][]string{"engine": {cluster.EngineClient}}
			s := assert.Value(open(t, spec(t, urlOf(c, "t"), given)))(t)
			res := launch(t, s, load.Plan{Measurement: load.Limits{Events: 100}})
			assert.True(t, res.Measurement.Failed == 100 && res.Classes[tt.class.String()] == 100,
				"got %d failed, classes %v, want 100 of class %s", res.Measurement.Failed, res.Classes, tt.class)
		})
	}
}

func TestClientCloseCompletes(t *testing.T) {
	t.Parallel()
	end := testEnd(t)
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		c.SleepControl(func() { <-end })
		return nil, nil, false
	})
	s := assert.Value(open(t, spec(t, urlOf(c, "t"), map[string][]string{"engine": {cluster.EngineClient}})))(t)
	res := launch(t, s, load.Plan{Measurement: load.Limits{Events: 100}, Drain: 200 * time.Millisecond})
	assert.True(t, res.Measurement.Sent == 100 && res.Measurement.Unknown == 100,
		"got %d sent, %d unknown, want 100 of both", res.Measurement.Sent, res.Measurement.Unknown)
}

func TestClientTransactions(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(2, "t"))
	s := assert.Value(open(t, spec(t, urlOf(c, "t"), map[string][]string{
		"engine": {cluster.EngineClient}, "transactions": {"true"}, "transaction-interval": {"30ms"}, "transaction-abort": {"40%"}, "clients": {"2"},
	})))(t)
	res := launch(t, s, load.Plan{Schedule: load.Constant(5000), Measurement: load.Limits{Events: 4000}})
	assert.Equal(t, res.Measurement.Acked, 4000, "acked")
	assert.OK(t, s.Target().(*franz.Producer).Close()) // ends the last transactions
	f := s.Facts()["transactions"].(map[string]any)
	committed, aborted := f["committed_events"].(uint64), f["aborted_events"].(uint64)
	assert.True(t, committed+aborted == 4000 && aborted != 0 && committed != 0, "got %v, want 4000 events in committed and aborted ones", f)
	assert.Equal(t, len(stored(t, c)), 4000, "records at the broker")
	got := drain(t, source(t, c, map[string][]string{"isolation": {"committed"}, "until-end": {"true"}}), nil)
	assert.Equal(t, uint64(got.events), committed, "committed events")
	assert.Equal(t, strings.Join(s.Warnings(), "\n"), "", "warnings")
}

// A fenced producer cannot begin another transaction. Events sent after that fail, and the run ends.
func TestClientTransactionsFenced(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	s, err := open(t, spec(t, urlOf(c, "t"), map[string][]string{
		"engine": {cluster.EngineClient}, "transactional-id": {"x"}, "transaction-interval": {"20ms"},
	}))
	assert.OK(t, err)
	other := assert.Value(kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.TransactionalID("x-0")))(t)
	defer other.Close()
	_, _, err = other.ProducerID(t.Context())
	assert.OK(t, err)
	res := launch(t, s, load.Plan{Schedule: load.Constant(20000), Measurement: load.Limits{Events: 4000, Time: time.Hour}, Drain: time.Hour})
	if h := res.Measurement; h.Sent != 4000 || h.Failed+h.Unknown != 4000 || h.Failed == 0 {
		t.Errorf("got %d sent, %d failed, %d unknown, want 4000 sent and none of them acked", h.Sent, h.Failed, h.Unknown)
	}
	w := strings.Join(s.Warnings(), "\n")
	assert.True(t, strings.Contains(w, "transaction"), "got warnings %q, want one about transactions", w)
}

// TestRoundTripStamps checks that events of either engine are read back with the stamps that they were sent with.
func TestRoundTripStamps(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
		t.Run(engine, func(t *testing.T) {
			c := fakeCluster(t, kfake.SeedTopics(3, "t"))
			put(t, c, records(300, 3, sized(40))) // from an older run
			sp := spec(t, urlOf(c, "t"), map[string][]string{"engine": {engine}})
			sp.Op, sp.Verify, sp.RunID = cluster.OpRoundTrip, true, 7
			s := assert.Value(open(t, sp))(t)
			res := launch(t, s, load.Plan{Measurement: load.Limits{Events: 2000}})
			assert.Must(t, res.Measurement.Acked == 2000, "got %d acked, want 2000", res.Measurement.Acked)
			got := drain(t, s.Source(), func(r *read) bool { return r.events >= 2000 })
			assert.True(t, got.events == 2000 && got.stamps == 2000,
				"got %d events and %d stamps, want 2000 of both", got.events, got.stamps)
		})
	}
}

// fromBeginning makes a share group start at the beginning of the log. This is a setting of the group, not of its clients.
func fromBeginning(t *testing.T, group string, opts ...kgo.Opt) {
	t.Helper()
	cl := assert.Value(kgo.NewClient(opts...))(t)
	defer cl.Close()
	set := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	set.Name, set.Value = "share.auto.offset.reset", new("earliest")
	of := kmsg.NewIncrementalAlterConfigsRequestResource()
	of.ResourceType, of.ResourceName, of.Configs = kmsg.ConfigResourceTypeGroupConfig, group, append(of.Configs, set)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, of)
	resp := assert.Value(req.RequestWith(t.Context(), cl))(t)
	for _, r := range resp.Resources {
		assert.OK(t, kerr.ErrorForCode(r.ErrorCode))
	}
}

// receiveShare receives n events of a share group and returns the number of events of
// each partition. Members may receive them in any order.
func receiveShare(t *testing.T, src load.Source, n int) map[int32]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	per, sum := map[int32]int{}, 0
	start := time.Now()
	err := src.Receive(ctx, func() time.Duration { return time.Since(start) }, func(_ int, as []load.Arrival) {
		mu.Lock()
		defer mu.Unlock()
		for _, a := range as {
			per[a.Log] += int(a.Events)
			sum += int(a.Events)
		}
		if sum >= n {
			cancel()
		}
	})
	assert.Must(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
	return per
}

// Each record goes to one member of a share group, also with more members than
// partitions, and the members accept what they got when they leave.
func TestConsumeShareGroup(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(2, "t"))
	put(t, c, records(3000, 2, sized(20)))
	fromBeginning(t, "s", kgo.SeedBrokers(c.ListenAddrs()...))
	src := source(t, c, map[string][]string{"engine": {cluster.EngineClient}, "share-group": {"s"}, "clients": {"3"}})
	got := receiveShare(t, src, 3000)
	assert.True(t, got[0]+got[1] == 3000 && len(got) == 2, "got events %v, want 3000 once each", got)
	facts := src.(consumerEngine).Facts()["share_group"].(map[string]any)
	var events, bytes uint64
	for i, n := range facts["member_events"].([]uint64) {
		events += n
		bytes += facts["member_bytes"].([]uint64)[i]
	}
	assert.True(t, events == 3000 && bytes == 60_000 && len(facts["member_events"].([]uint64)) == 3, "facts are %v", facts)
	for log, n := range src.Lag() {
		assert.Equal(t, n, -1, "lag of partition %d, which a share group does not know", log)
	}
	assert.Equal(t, src.Rebalancing(), 0, "time without an assignment")
	// Only records produced since then are delivered.
	put(t, c, records(40, 2, sized(20)))
	again := source(t, c, map[string][]string{"engine": {cluster.EngineClient}, "share-group": {"s"}})
	got = receiveShare(t, again, 40)
	assert.True(t, got[0]+got[1] == 40, "got events %v, want the 40 new ones", got)
}

// A coordinator that does not answer must not delay the end of a run.
func TestGroupLeavesASilentCoordinator(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	end := testEnd(t)
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	put(t, c, records(100, 1, sized(10)))
	src := source(t, c, map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}})
	silent := func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		c.SleepControl(func() { <-end })
		return nil, nil, false
	}
	for _, key := range []kmsg.Key{kmsg.OffsetCommit, kmsg.LeaveGroup} {
		c.ControlKey(int16(key), silent)
	}
	got := drain(t, src, func(r *read) bool { return r.events >= 100 })
	assert.Equal(t, got.events, 100, "events")
}
