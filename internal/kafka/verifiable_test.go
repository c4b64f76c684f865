package kafka

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit/assert"
)

// compactedTopic starts a fake cluster whose topic "t" has the settings given.
func compactedTopic(t *testing.T, partitions int32, settings map[string]*string) *kfake.Cluster {
	t.Helper()
	c := fakeCluster(t)
	cl := assert.Value(kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...)))(t)
	defer cl.Close()
	if r, err := kadm.NewClient(cl).CreateTopic(t.Context(), partitions, 1, settings, "t"); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	return c
}

// TestKeyHashes compares the key hashes that each engine reports for its batches with
// those of the events that are read.
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
			k := s.Target().(protocol.Compacted)
			assert.Must(t, k.Compacted(), "the target does not report the topic as compacted")
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
					if want := reported[event{st.Stream, st.Index}]; st.Bad || st.Key != want || want == 0 {
						t.Errorf("event %d of stream %d has the key hash %x, but %x was reported", st.Index, st.Stream, st.Key, want)
					}
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
		if res, err := s.(*session).cl.Admin.DeleteRecords(t.Context(), at); err != nil || res.Error() != nil {
			t.Fatal(err, res.Error())
		}
	}
	remove(1, 405)
	first := drain(t, src, func(r *read) bool { return r.events >= 1595 })
	if first.events != 1595 || first.spans[1][0] != 405 {
		t.Errorf("read %d events, in partition 1 from %d on; want 1595, 405", first.events, first.spans[1][0])
	}
	remove(0, 500) // already read
	if got := src.Skipped(); len(got) != 2 || len(got[0]) != 0 || len(got[1]) != 1 || got[1][0] != (protocol.Span{From: 0, To: 405}) {
		t.Errorf("got %v, want 0 to 405 of partition 1", got)
	}
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
	launch(t, s, load.Plan{Schedule: load.Limit(load.Constant(5000), events)})
	txn := s.(protocol.Transactional)
	txn.EndTransactions()
	aborted := map[[2]uint64]bool{}
	txn.Uncommitted(func(stream int32, first, n uint64, is bool) {
		assert.True(t, is, "the end of the transaction of %d events from %d of stream %d is unknown", n, first, stream)
		for i := range n {
			aborted[[2]uint64{uint64(stream), first + i}] = true
		}
	})
	f := s.Facts()["transactions"].(map[string]any)
	if n := f["aborted_events"].(uint64); n != uint64(len(aborted)) || n == 0 || f["committed_events"].(uint64)+n != events {
		t.Errorf("%d events are reported as aborted; %v", len(aborted), f)
	}
	drain(t, observedSource{txn.Committed(), func(a *load.Arrival) {
		for _, st := range a.Stamps {
			assert.True(t, !aborted[[2]uint64{uint64(st.Stream), st.Index}],
				"event %d of stream %d was aborted, but was read", st.Index, st.Stream)
		}
	}}, func(r *read) bool { return r.events >= events-len(aborted) })
}

// TestVerifiable opens runs of which some cannot be verified: the error says what
// to do.
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
