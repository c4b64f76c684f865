package kafka

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/load"
	"carronade/target"
)

// compactedTopic is a fake cluster whose topic "t" is compacted.
func compactedTopic(t *testing.T, partitions int32, settings map[string]*string) *kfake.Cluster {
	t.Helper()
	c := fakeCluster(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if r, err := kadm.NewClient(cl).CreateTopic(t.Context(), partitions, 1, settings, "t"); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	return c
}

// TestKeyHashes holds the keys that either engine says its shots have to those that
// are found where their events are.
func TestKeyHashes(t *testing.T) {
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
		{"client", map[string][]string{"engine": {engineClient}, "clients": {"2"}}},
		{"client, fresh", map[string][]string{"engine": {engineClient}, "fresh": {"true"}, "compression": {"lz4"}}},
		{"client, by key", map[string][]string{"engine": {engineClient}, "partitioner": {"murmur2"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := compactedTopic(t, 3, map[string]*string{"cleanup.policy": &policy})
			sp := spec(t, urlOf(c, "t"), tt.given)
			sp.Options["key"], sp.Verify, sp.RunID = []string{"uniform(200)"}, true, 7
			s, err := open(t, sp)
			if err != nil {
				t.Fatal(err)
			}
			k := s.Target().(target.Compacted)
			if !k.Compacted() {
				t.Fatal("the topic is not known to be compacted")
			}
			type event struct {
				stripe int32
				index  uint64
			}
			var mu sync.Mutex
			said := map[event]uint64{}
			launch(t, s, load.Plan{Hold: load.Limits{Events: events}, Observe: func(out []load.Outcome) {
				mu.Lock()
				defer mu.Unlock()
				for i := range out {
					for n, h := range k.AppendKeyHashes(nil, &out[i].Shot) {
						said[event{out[i].Stripe, out[i].First + uint64(n)}] = h
					}
					if out[i].Sum != 0 {
						t.Errorf("a batch that may be made anew is told apart by its checksum")
					}
				}
			}})
			found, keys := 0, map[uint64]bool{}
			drain(t, watched{s.Source(), func(a *load.Arrival) {
				mu.Lock()
				defer mu.Unlock()
				for _, st := range a.Stamps {
					found++
					keys[st.Key] = true
					if want := said[event{st.Stripe, st.Index}]; st.Bad || st.Key != want || want == 0 {
						t.Errorf("event %d of stripe %d has the key %x, and %x was said", st.Index, st.Stripe, st.Key, want)
					}
				}
			}}, func(r *read) bool { return r.events >= events })
			if found != events || len(keys) < 50 || len(keys) > 200 {
				t.Errorf("%d events with %d keys were found, want %d with many of 200", found, len(keys), events)
			}
		})
	}
}

// watched shows what a source delivers.
type watched struct {
	load.Source
	see func(*load.Arrival)
}

// TestSkipped removes what was not read yet, where reading goes on.
func TestSkipped(t *testing.T) {
	c := fake(t, 2)
	given := spec(t, fakeURL(c.ListenAddrs()), nil)
	given.Verify = true
	s, err := open(t, given)
	if err != nil {
		t.Fatal(err)
	}
	src := s.Source().(*wireSource)
	r := newRig(t, s.(*session).out.(wireFiring).producer)
	r.events = 13
	r.fire(2000)
	remove := func(partition int32, upto int64) {
		t.Helper()
		var at kadm.Offsets
		at.Add(kadm.Offset{Topic: "events", Partition: partition, At: upto})
		if res, err := s.(*session).cl.admin.DeleteRecords(t.Context(), at); err != nil || res.Error() != nil {
			t.Fatal(err, res.Error())
		}
	}
	remove(1, 405)
	first := drain(t, src, func(r *read) bool { return r.events >= 1595 })
	if first.events != 1595 || first.spans[1][0] != 405 {
		t.Errorf("%d events were read, in partition 1 from %d on; want 1595, 405", first.events, first.spans[1][0])
	}
	remove(0, 500) // was read
	if got := src.Skipped(); len(got) != 2 || len(got[0]) != 0 || len(got[1]) != 1 || got[1][0] != (target.Span{From: 0, To: 405}) {
		t.Errorf("got %v, want 0 to 405 of partition 1", got)
	}
}

// TestUncommitted fires in transactions, and reads as a reader of committed events
// does what the firing side says was committed.
func TestUncommitted(t *testing.T) {
	const events = 4000
	c := fakeCluster(t, kfake.SeedTopics(2, "t"))
	sp := spec(t, urlOf(c, "t"), map[string][]string{
		"engine": {engineClient}, "transactions": {"true"}, "transaction-interval": {"30ms"}, "transaction-abort": {"40%"}, "clients": {"2"},
	})
	sp.Verify, sp.RunID = true, 7
	s, err := open(t, sp)
	if err != nil {
		t.Fatal(err)
	}
	launch(t, s, load.Plan{Schedule: load.Limit(load.Constant(5000), events)})
	txn := s.(target.Transactional)
	txn.Conclude()
	aborted := map[[2]uint64]bool{}
	txn.Uncommitted(func(stripe int32, first, n uint64, is bool) {
		if !is {
			t.Errorf("nobody knows how the transaction of %d events from %d of stripe %d ended", n, first, stripe)
		}
		for i := range n {
			aborted[[2]uint64{uint64(stripe), first + i}] = true
		}
	})
	f := s.Facts()["transactions"].(map[string]any)
	if n := f["aborted_events"].(uint64); n != uint64(len(aborted)) || n == 0 || f["committed_events"].(uint64)+n != events {
		t.Errorf("%d events are told as aborted; %v", len(aborted), f)
	}
	drain(t, watched{txn.Committed(), func(a *load.Arrival) {
		for _, st := range a.Stamps {
			if aborted[[2]uint64{uint64(st.Stripe), st.Index}] {
				t.Errorf("event %d of stripe %d was aborted, and is seen", st.Index, st.Stripe)
			}
		}
	}}, func(r *read) bool { return r.events >= events-len(aborted) })
}

// Where too many transactions were not committed, the rest of them is not known.
func TestFatesAreBounded(t *testing.T) {
	l := &clientLane{id: 3}
	tr := &transactor{s: &clientSender{lanes: []*clientLane{l}}, fates: make([]fate, mostFates)}
	for i := range uint64(10) {
		l.from, l.to = i*100, i*100+100
		tr.note(i%2 == 0, true)
	}
	n := 0
	tr.uncommitted(func(stripe int32, first, events uint64, aborted bool) {
		n++
		if stripe != 3 || first != 100 || events != 900 || aborted {
			t.Errorf("got %d events from %d of stripe %d, aborted %v; want 900 from 100 of 3, and nobody knows", events, first, stripe, aborted)
		}
	})
	if n != 1 {
		t.Errorf("told %d times, want once", n)
	}
}

// TestVerifiable opens runs that cannot be verified: the error says what to do.
func TestVerifiable(t *testing.T) {
	for _, tt := range []struct {
		name, policy string
		given        map[string][]string
		says, hint   string // "": it can
	}{
		{"keys", "compact", map[string][]string{"key": {"seq"}}, "", ""},
		{"keys, by the client", "delete,compact", map[string][]string{"key": {"seq"}, "engine": {engineClient}, "compression": {"gzip"}}, "", ""},
		{"without keys", "compact", nil, "refuses events without a key", "--key"},
		{"without keys, retention too", "compact,delete", nil, "refuses events without a key", "cleanup.policy=delete"},
		{"without keys, not compacted", "delete", nil, "", ""},
		{"compressed", "compact", map[string][]string{"key": {"seq"}, "compression": {"lz4"}}, "stamps none that it compresses", "--engine client"},
		{"too small", "compact", map[string][]string{"key": {"seq"}, "size": {"23"}}, "not every value has room", "24 bytes"},
		{"transactions", "compact", map[string][]string{"key": {"seq"}, "engine": {engineClient}, "transactions": {"true"}}, "of transactions it cannot be told", "--transactions"},
		{"small transactions", "delete", map[string][]string{"size": {"10"}, "engine": {engineClient}, "transactions": {"true"}}, "reader of committed events", "24 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := compactedTopic(t, 1, map[string]*string{"cleanup.policy": &tt.policy})
			sp := spec(t, urlOf(c, "t"), tt.given)
			for _, verify := range []bool{false, true} {
				sp.Verify = verify
				_, err := open(t, sp)
				switch {
				case !verify || tt.says == "":
					if err != nil {
						t.Errorf("verify %v: got %v", verify, err)
					}
				case err == nil:
					t.Error("it is opened")
				default:
					var te *target.Error
					if !errors.As(err, &te) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(te.Hint, tt.hint) {
						t.Errorf("got %v, %+v", err, te)
					}
				}
			}
		})
	}
}

func (w watched) Receive(ctx context.Context, now func() time.Duration, sink func(int, []load.Arrival)) error {
	return w.Source.Receive(ctx, now, func(lane int, as []load.Arrival) {
		for i := range as {
			w.see(&as[i])
		}
		sink(lane, as)
	})
}
