package kafka

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/internal/run/ledger"
	"carronade/load"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// A timestamp or a codec that the broker changes does not count as corruption.
func TestRealVerifyChanged(t *testing.T) {
	t.Parallel()
	needsKafka(t)
	c := kafkatest.Shared(t)
	const events = 4000
	for _, tt := range []struct {
		name     string
		settings []string
		given    map[string][]string
		method   string
	}{
		{"stamped", []string{"message.timestamp.type=LogAppendTime"}, nil, "batches and stamps"},
		{"idempotent", []string{"message.timestamp.type=LogAppendTime"}, map[string][]string{"idempotent": {"true"}}, "batches and stamps"},
		{"compressed", []string{"message.timestamp.type=LogAppendTime"}, map[string][]string{"compression": {"lz4"}}, "batches"},
		{"too small for stamps", []string{"message.timestamp.type=LogAppendTime"}, map[string][]string{"size": {"10"}}, "batches"},
		{"compressed by the broker", []string{"compression.type=gzip"}, nil, "stamps"},
		{"with another codec", []string{"compression.type=gzip"}, map[string][]string{"compression": {"lz4"}}, "offsets"},
		{"with the same codec", []string{"compression.type=lz4"}, map[string][]string{"compression": {"lz4"}}, "batches"},
		{"unpacked by the broker", []string{"compression.type=uncompressed", "message.timestamp.type=LogAppendTime"}, map[string][]string{"compression": {"zstd"}}, "offsets"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			topic := c.CreateTopic(t, 2, 1, tt.settings...)
			given := spec(t, "kafka://"+c.Bootstrap()+"/"+topic, tt.given)
			given.Verify = true
			s := assert.Value(open(t, given))(t)
			p := s.(*session).out.(*producer)
			src := s.Source().(*wireSource)
			l := ledger.New(ledger.Config{Logs: 2, Start: src.Starts(), LogOf: p.LogOf, RunID: uint32(given.RunID), Stamped: p.Stamped()})
			r := newRig(t, p)
			r.events = 20
			l.Fired(r.send(events))
			ctx, cancel := context.WithCancel(t.Context())
			var arrived atomic.Int64
			done := make(chan struct{})
			go func() {
				defer close(done)
				// It ends with the context.
				_ = src.Receive(ctx, func() time.Duration { return 0 }, func(_ int, a []load.Arrival) {
					l.Arrived(a)
					for i := range a {
						arrived.Add(int64(a[i].Events))
					}
				})
			}()
			testkit.Until(t, "all events have arrived", func() bool { return arrived.Load() >= events })
			cancel()
			<-done
			v := l.Verdict(slices.Repeat([]bool{true}, len(src.Logs())), nil)
			got := [7]uint64{v.Acked, v.Read, v.Lost, v.Corrupted, v.Recovered, v.Foreign, v.Inexact}
			assert.Equal(t, got, [7]uint64{events, events}, "acked, read, lost, corrupted, recovered, foreign, inexact")
			assert.Equal(t, v.Method, tt.method, "method")
		})
	}
}

// Records that were read and are missing at the end are reported: here the topic was deleted and created again.
func TestRealGone(t *testing.T) {
	t.Parallel()
	needsKafka(t)
	c := kafkatest.Shared(t)
	const events = 4000
	topic := c.CreateTopic(t, 2, 1)
	given := spec(t, "kafka://"+c.Bootstrap()+"/"+topic, nil)
	given.Verify = true
	s := assert.Value(open(t, given))(t)
	src := s.Source().(*wireSource)
	r := newRig(t, s.(*session).out.(*producer))
	r.send(events)
	got := drain(t, src, func(r *read) bool { return r.events == events })
	assert.Must(t, got.events == events, "read %d events, want %d", got.events, events)
	gone := func() (sum uint64) {
		t.Helper()
		ns := assert.Value(src.Gone(t.Context()))(t)
		for _, n := range ns {
			sum += n
		}
		return sum
	}
	assert.Equal(t, gone(), 0, "events gone")
	adm := c.Admin(t)
	assert.Value(adm.DeleteRecords(t.Context(), kadm.Offsets{topic: {0: {Topic: topic, Partition: 0, At: 1000}}}))(t)
	assert.Equal(t, gone(), 0, "events gone after a deletion like retention's")
	assert.Value(adm.DeleteTopics(t.Context(), topic))(t)
	testkit.Until(t, "the broker has created it again", func() bool {
		resp, err := adm.CreateTopic(t.Context(), 2, 1, nil, topic)
		return err == nil && resp.Err == nil
	})
	assert.Equal(t, gone(), events, "events gone")
	w := strings.Join(src.Warnings(), " ")
	assert.True(t, strings.Contains(w, "its log no longer holds"), "got the warnings %q", w)
}

// The leader epochs reveal a log that was truncated and has grown again.
func TestGoneByEpoch(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	for _, tt := range []struct {
		name  string
		epoch int32 // as the leader answers
		end   int64
		want  uint64
	}{
		{"complete", 0, 1000, 0},
		{"truncated", 0, 700, 300},
		{"an epoch before", -2, 400, 600},
		{"all", 0, 0, 1000},
		{"not known", -1, -1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := eventsCluster(t, 1)
			given := spec(t, fakeURL(c.ListenAddrs()), nil)
			given.Verify = true
			s := assert.Value(open(t, given))(t)
			src := s.Source().(*wireSource)
			newRig(t, s.(*session).out.(*producer)).send(1000)
			drain(t, src, func(r *read) bool { return r.events == 1000 })
			n := len(src.parts[0].readRanges)
			assert.Must(t, n == 1, "%d stretches, want one: %+v", n, src.parts[0].readRanges)
			ns, err := src.Gone(t.Context())
			assert.Must(t, err == nil && ns[0] == 0, "got %v, %v of a complete log", ns, err)
			c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				asked := req.(*kmsg.OffsetForLeaderEpochRequest)
				resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
				rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
				rt.Topic = asked.Topics[0].Topic
				rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
				rp.LeaderEpoch, rp.EndOffset = max(-1, asked.Topics[0].Partitions[0].LeaderEpoch+tt.epoch), tt.end
				if tt.epoch == -2 {
					rp.LeaderEpoch = 0
				}
				rt.Partitions = append(rt.Partitions, rp)
				resp.Topics = append(resp.Topics, rt)
				return resp, nil, true
			})
			ns, err = src.Gone(t.Context())
			assert.True(t, err == nil && ns[0] == tt.want, "got %v, %v, want %d", ns, err, tt.want)
		})
	}
}

// compactedTopic starts a fake cluster whose topic "t" has the settings given.
func compactedTopic(t *testing.T, partitions int32, settings map[string]*string) *kfake.Cluster {
	t.Helper()
	c := fakeCluster(t)
	cl := assert.Value(kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...)))(t)
	defer cl.Close()
	r, err := kadm.NewClient(cl).CreateTopic(t.Context(), partitions, 1, settings, "t")
	assert.Must(t, err == nil && r.Err == nil, "%v %v", err, r.Err)
	return c
}

// TestKeyHashes compares the key hashes that each engine reports for its batches with those of the events that are read.
func TestKeyHashes(t *testing.T) {
	t.Parallel()
	const events = 3000
	policy := "compact"
	for _, tt := range []struct {
		name  string
		given map[string][]string
	}{
		{"ahead", nil},
		{"ahead, by key", map[string][]string{"partitioner": {"murmur2"}, "clients": {"2"}}},
		{"fresh", map[string][]string{"fresh": {"true"}}},
		{"fresh, by key", map[string][]string{"fresh": {"true"}, "partitioner": {"murmur2"}}},
		{"small pool", map[string][]string{"pool": {"64KiB"}, "batch-size": {"2KiB"}}},
		{"client", map[string][]string{"engine": {cluster.EngineClient}, "clients": {"2"}}},
		{"client, fresh", map[string][]string{"engine": {cluster.EngineClient}, "fresh": {"true"}, "compression": {"lz4"}}},
		{"client, by key", map[string][]string{"engine": {cluster.EngineClient}, "partitioner": {"murmur2"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := compactedTopic(t, 3, map[string]*string{"cleanup.policy": &policy})
			sp := spec(t, urlOf(c, "t"), tt.given)
			sp.Options["key"], sp.Verify, sp.RunID = []string{"uniform(200)"}, true, 7
			s := assert.Value(open(t, sp))(t)
			k := s.Target().Capabilities()
			assert.Must(t, k.AppendKeyHashes != nil, "the target does not report the topic as compacted")
			type event struct {
				stream int32
				index  uint64
			}
			var mu sync.Mutex
			reported := map[event]uint64{}
			launch(t, s, load.Plan{Measurement: load.Limits{Events: events}, Observe: func(out []load.Outcome) {
				mu.Lock()
				defer mu.Unlock()
				for i := range out {
					for n, h := range k.AppendKeyHashes(nil, &out[i].Batch) {
						reported[event{out[i].Stream, out[i].First + uint64(n)}] = h
					}
					assert.Equal(t, out[i].Sum, 0, "checksum of a batch that the broker may rewrite")
				}
			}})
			found, keys := 0, map[uint64]bool{}
			drain(t, observedSource{s.Source(), func(a *load.Arrival) {
				mu.Lock()
				defer mu.Unlock()
				for _, st := range a.Stamps {
					found++
					keys[st.Key] = true
					want := reported[event{st.Stream, st.Index}]
					assert.True(t, !st.Bad && st.Key == want && want != 0, "event %d of stream %d has the key hash %x, but %x was reported", st.Index, st.Stream, st.Key, want)
				}
			}}, func(r *read) bool { return r.events >= events })
			assert.True(t, found == events && len(keys) >= 50 && len(keys) <= 200,
				"found %d events with %d keys, want %d events with 50 to 200 keys", found, len(keys), events)
		})
	}
}

// An observedSource passes what a source delivers to see.
type observedSource struct {
	load.Source
	see func(*load.Arrival)
}

// TestSkipped deletes records before they are read; reading goes on behind them.
func TestSkipped(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 2)
	given := spec(t, fakeURL(c.ListenAddrs()), nil)
	given.Verify = true
	s := assert.Value(open(t, given))(t)
	src := s.Source().(*wireSource)
	r := newRig(t, s.(*session).out.(*producer))
	r.events = 13
	r.send(2000)
	remove := func(partition int32, upto int64) {
		t.Helper()
		var at kadm.Offsets
		at.Add(kadm.Offset{Topic: "events", Partition: partition, At: upto})
		res, err := s.(*session).cl.Admin.DeleteRecords(t.Context(), at)
		assert.Must(t, err == nil && res.Error() == nil, "%v %v", err, res.Error())
	}
	remove(1, 405)
	first := drain(t, src, func(r *read) bool { return r.events >= 1595 })
	if first.events != 1595 || first.spans[1][0] != 405 {
		t.Errorf("read %d events, in partition 1 from %d on; want 1595, 405", first.events, first.spans[1][0])
	}
	remove(0, 500) // already read
	got := src.Skipped()
	assert.True(t, len(got) == 2 && len(got[0]) == 0 && len(got[1]) == 1 && got[1][0] == (load.Span{From: 0, To: 405}), "got %v, want 0 to 405 of partition 1", got)
}

// TestUncommitted produces in transactions. A reader of committed events must see
// exactly the events that the producing side reports as committed.
func TestUncommitted(t *testing.T) {
	t.Parallel()
	const events = 4000
	c := fakeCluster(t, kfake.SeedTopics(2, "t"))
	sp := spec(t, urlOf(c, "t"), map[string][]string{
		"engine": {cluster.EngineClient}, "transactions": {"true"}, "transaction-interval": {"30ms"}, "transaction-abort": {"40%"}, "clients": {"2"},
	})
	sp.Verify, sp.RunID = true, 7
	s := assert.Value(open(t, sp))(t)
	launch(t, s, load.Plan{Schedule: load.Constant(5000), Measurement: load.Limits{Events: events}})
	txn := s.Capabilities().Transactions
	txn.EndTransactions()
	aborted := map[[2]uint64]bool{}
	txn.Uncommitted(func(stream int32, first, n uint64, is bool) {
		assert.True(t, is, "the end of the transaction of %d events from %d of stream %d is unknown", n, first, stream)
		for i := range n {
			aborted[[2]uint64{uint64(stream), first + i}] = true
		}
	})
	f := s.Facts()["transactions"].(map[string]any)
	n := f["aborted_events"].(uint64)
	assert.True(t, n == uint64(len(aborted)) && n != 0 && f["committed_events"].(uint64)+n == events, "%d events are reported as aborted; %v", len(aborted), f)
	drain(t, observedSource{txn.Committed(), func(a *load.Arrival) {
		for _, st := range a.Stamps {
			assert.True(t, !aborted[[2]uint64{uint64(st.Stream), st.Index}],
				"event %d of stream %d was aborted, but was read", st.Index, st.Stream)
		}
	}}, func(r *read) bool { return r.events >= events-len(aborted) })
}

// TestVerifiable opens runs of which some cannot be verified: the error says what to do.
func TestVerifiable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, policy string
		given        map[string][]string
		says, hint   string // "": it can be verified
	}{
		{"keys", "compact", map[string][]string{"key": {"seq"}}, "", ""},
		{"keys, by the client", "delete,compact", map[string][]string{"key": {"seq"}, "engine": {cluster.EngineClient}, "compression": {"gzip"}}, "", ""},
		{"without keys", "compact", nil, "refuses events without a key", "--key"},
		{"without keys, retention too", "compact,delete", nil, "refuses events without a key", "cleanup.policy=delete"},
		{"without keys, not compacted", "delete", nil, "", ""},
		{"compressed", "compact", map[string][]string{"key": {"seq"}, "compression": {"lz4"}}, "cannot stamp compressed events", "--engine client"},
		{"too small", "compact", map[string][]string{"key": {"seq"}, "size": {"15"}}, "not every value has room", "16 bytes"},
		{"transactions", "compact", map[string][]string{"key": {"seq"}, "engine": {cluster.EngineClient}, "transactions": {"true"}}, "which events of a transaction are missing", "--transactions"},
		{"small transactions", "delete", map[string][]string{"size": {"10"}, "engine": {cluster.EngineClient}, "transactions": {"true"}}, "read-committed reader", "16 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := compactedTopic(t, 1, map[string]*string{"cleanup.policy": &tt.policy})
			sp := spec(t, urlOf(c, "t"), tt.given)
			for _, verify := range []bool{false, true} {
				sp.Verify = verify
				_, err := open(t, sp)
				switch {
				case !verify || tt.says == "":
					assert.True(t, err == nil, "verify %v: got %v", verify, err)
				case err == nil:
					t.Error("Open succeeded, want an error")
				default:
					protocoltest.Explained(t, err, tt.says, tt.hint)
				}
			}
		})
	}
}

func (w observedSource) Receive(ctx context.Context, now func() time.Duration, sink func(int, []load.Arrival)) error {
	return w.Source.Receive(ctx, now, func(lane int, as []load.Arrival) {
		for i := range as {
			w.see(&as[i])
		}
		sink(lane, as)
	})
}
