package kafka

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
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

// compactedTopic starts a fake cluster whose topic "t" has the settings given.
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
				t.Fatal("the target does not report the topic as compacted")
			}
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
					if out[i].Sum != 0 {
						t.Errorf("an outcome has the checksum of a batch that the broker may rewrite")
					}
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
			if found != events || len(keys) < 50 || len(keys) > 200 {
				t.Errorf("found %d events with %d keys, want %d events with 50 to 200 keys", found, len(keys), events)
			}
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
	s, err := open(t, given)
	if err != nil {
		t.Fatal(err)
	}
	src := s.Source().(*wireSource)
	r := newRig(t, s.(*session).out.(wireProducer).producer)
	r.events = 13
	r.send(2000)
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
		t.Errorf("read %d events, in partition 1 from %d on; want 1595, 405", first.events, first.spans[1][0])
	}
	remove(0, 500) // already read
	if got := src.Skipped(); len(got) != 2 || len(got[0]) != 0 || len(got[1]) != 1 || got[1][0] != (target.Span{From: 0, To: 405}) {
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
		"engine": {engineClient}, "transactions": {"true"}, "transaction-interval": {"30ms"}, "transaction-abort": {"40%"}, "clients": {"2"},
	})
	sp.Verify, sp.RunID = true, 7
	s, err := open(t, sp)
	if err != nil {
		t.Fatal(err)
	}
	launch(t, s, load.Plan{Schedule: load.Limit(load.Constant(5000), events)})
	txn := s.(target.Transactional)
	txn.EndTransactions()
	aborted := map[[2]uint64]bool{}
	txn.Uncommitted(func(stream int32, first, n uint64, is bool) {
		if !is {
			t.Errorf("the end of the transaction of %d events from %d of stream %d is unknown", n, first, stream)
		}
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
			if aborted[[2]uint64{uint64(st.Stream), st.Index}] {
				t.Errorf("event %d of stream %d was aborted, but was read", st.Index, st.Stream)
			}
		}
	}}, func(r *read) bool { return r.events >= events-len(aborted) })
}

// After too many uncommitted transactions, the result of later ones is unknown.
func TestFatesAreBounded(t *testing.T) {
	t.Parallel()
	l := &clientLane{id: 3}
	tr := &transactor{s: &clientSender{lanes: []*clientLane{l}}, uncommittedRanges: make([]uncommittedRange, mostUncommitted)}
	for i := range uint64(10) {
		l.addToTransaction(&load.Batch{First: i * 100, Events: 100})
		tr.recordEnd(i%2 == 0, true)
	}
	n := 0
	tr.uncommitted(func(stream int32, first, events uint64, aborted bool) {
		n++
		if stream != 3 || first != 100 || events != 900 || aborted {
			t.Errorf("got %d events from %d of stream %d, aborted %v; want 900 from 100 of 3, unknown", events, first, stream, aborted)
		}
	})
	if n != 1 {
		t.Errorf("reported %d times, want once", n)
	}
}

// TestSentAgain sends batches again, in the same transaction and in a later one: only
// the events whose last transaction was not committed are reported.
func TestSentAgain(t *testing.T) {
	t.Parallel()
	type transaction struct {
		batches [][2]uint64 // first, attempt; of 10 events each
		how     string
	}
	for _, tt := range []struct {
		name string
		txns []transaction
		want string // of batches, by their first events
	}{
		{"in order", []transaction{{[][2]uint64{{0, 0}, {10, 0}, {20, 0}}, "aborted"}, {[][2]uint64{{30, 0}}, "committed"}}, "aborted 0 10 20"},
		{"in the same", []transaction{{[][2]uint64{{0, 0}, {10, 0}, {20, 0}, {10, 1}}, "aborted"}}, "aborted 0 10 20"},
		{"in the same, the first", []transaction{{[][2]uint64{{50, 0}, {60, 0}}, "committed"}, {[][2]uint64{{70, 0}, {50, 1}, {80, 0}}, "aborted"}}, "aborted 50 70 80"},
		{"with others between", []transaction{{[][2]uint64{{0, 0}, {10, 0}, {20, 0}, {30, 0}}, "committed"}, {[][2]uint64{{0, 1}, {30, 1}}, "aborted"}}, "aborted 0 30"},
		{"committed after", []transaction{{[][2]uint64{{0, 0}, {10, 0}, {20, 0}, {30, 0}}, "aborted"}, {[][2]uint64{{20, 1}, {0, 1}, {40, 0}}, "committed"}}, "aborted 10 30"},
		{"refused, and not known after", []transaction{{[][2]uint64{{0, 0}, {10, 0}}, "aborted"}, {[][2]uint64{{10, 1}}, "unknown"}}, "aborted 0 unknown 10"},
		{"three times", []transaction{{[][2]uint64{{0, 0}, {10, 0}}, "aborted"}, {[][2]uint64{{10, 1}, {10, 2}}, "committed"}, {[][2]uint64{{0, 1}, {20, 0}}, "aborted"}}, "aborted 0 20"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := &clientLane{id: 3}
			tr := &transactor{s: &clientSender{lanes: []*clientLane{l}}}
			for _, x := range tt.txns {
				for _, s := range x.batches {
					l.addToTransaction(&load.Batch{First: s[0], Events: 10, Attempt: int32(s[1])})
				}
				tr.recordEnd(x.how == "committed", x.how == "aborted")
			}
			noted := map[bool]map[uint64]bool{true: {}, false: {}}
			tr.uncommitted(func(_ int32, first, events uint64, aborted bool) {
				for i := range events {
					noted[aborted][first+i] = true
				}
			})
			var got []string
			for _, aborted := range []bool{true, false} {
				if len(noted[aborted]) > 0 {
					got = append(got, map[bool]string{true: "aborted", false: "unknown"}[aborted])
				}
				for _, i := range slices.Sorted(maps.Keys(noted[aborted])) {
					if i%10 == 0 {
						got = append(got, strconv.FormatUint(i, 10))
					}
				}
				if n := len(noted[aborted]); n%10 != 0 {
					t.Errorf("%d events are reported, which are not complete batches", n)
				}
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
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
		{"keys, by the client", "delete,compact", map[string][]string{"key": {"seq"}, "engine": {engineClient}, "compression": {"gzip"}}, "", ""},
		{"without keys", "compact", nil, "refuses events without a key", "--key"},
		{"without keys, retention too", "compact,delete", nil, "refuses events without a key", "cleanup.policy=delete"},
		{"without keys, not compacted", "delete", nil, "", ""},
		{"compressed", "compact", map[string][]string{"key": {"seq"}, "compression": {"lz4"}}, "cannot stamp compressed events", "--engine client"},
		{"too small", "compact", map[string][]string{"key": {"seq"}, "size": {"15"}}, "not every value has room", "16 bytes"},
		{"transactions", "compact", map[string][]string{"key": {"seq"}, "engine": {engineClient}, "transactions": {"true"}}, "which events of a transaction are missing", "--transactions"},
		{"small transactions", "delete", map[string][]string{"size": {"10"}, "engine": {engineClient}, "transactions": {"true"}}, "read-committed reader", "16 bytes"},
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
					t.Error("Open succeeded, want an error")
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

func (w observedSource) Receive(ctx context.Context, now func() time.Duration, sink func(int, []load.Arrival)) error {
	return w.Source.Receive(ctx, now, func(lane int, as []load.Arrival) {
		for i := range as {
			w.see(&as[i])
		}
		sink(lane, as)
	})
}
