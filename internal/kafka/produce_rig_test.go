package kafka

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A rig drives a producer as the engine does, with a limit of batches in flight
// for each lane, and collects every outcome.
type rig struct {
	t     testing.TB
	p     *producer
	start time.Time
	limit int // of batches in flight on a lane
	// events limits the events of a batch; 0: as many as there is room for.
	events int

	mu        sync.Mutex
	wake      chan struct{}
	outcomes  []load.Outcome
	inFlight  map[int]int
	completed map[[2]uint64]int // by lane and number: how often
}

func newRig(t testing.TB, p *producer) *rig {
	r := &rig{t: t, p: p, start: time.Now(), limit: 5, wake: make(chan struct{}, 1), inFlight: map[int]int{}, completed: map[[2]uint64]int{}}
	p.Start(r)
	return r
}

func (r *rig) Now() time.Duration { return time.Since(r.start) }

func (r *rig) Complete(out []load.Outcome) {
	r.mu.Lock()
	for _, o := range out {
		r.inFlight[int(o.Lane)]--
		r.completed[[2]uint64{uint64(o.Lane), o.Seq}]++
	}
	r.outcomes = append(r.outcomes, out...)
	r.mu.Unlock()
	r.signal()
}

func (r *rig) Ready(int, time.Duration) { r.signal() }

func (r *rig) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// send sends total events, divided among the streams by the producer's
// partitioner, waits until all are completed and returns the outcomes.
func (r *rig) send(total uint64) []load.Outcome {
	r.t.Helper()
	return r.sendAnd(total, func(int) {})
}

// sendAnd is send, and calls f with the number of events sent so far, between batches.
func (r *rig) sendAnd(total uint64, f func(sent int)) []load.Outcome {
	r.t.Helper()
	partitioner := r.p.Partitioner()
	next := make([]uint64, partitioner.Streams())
	seq := map[int]uint64{}
	sent := uint64(0)
	deadline := time.After(60 * time.Second)
	for {
		blocked := true
		var lanes []load.Lane
		for s := range next {
			end := partitioner.Before(int32(s), total)
			if next[s] == end {
				continue
			}
			l := r.p.Route(int32(s))
			if l == nil {
				continue
			}
			r.mu.Lock()
			full := r.inFlight[l.ID()] >= r.limit
			r.mu.Unlock()
			if full {
				continue
			}
			room := l.Room(int32(s), next[s])
			if room == 0 {
				continue
			}
			if r.events > 0 {
				room = min(room, r.events)
			}
			batch := load.Batch{Seq: seq[l.ID()], Stream: int32(s), First: next[s], Events: int32(min(uint64(room), end-next[s])), DueFirst: -1, DueLast: -1}
			if l.Fire([]load.Batch{batch}) == 0 {
				continue
			}
			r.mu.Lock()
			r.inFlight[l.ID()]++
			r.mu.Unlock()
			seq[l.ID()]++
			next[s] += uint64(batch.Events)
			sent += uint64(batch.Events)
			lanes = append(lanes, l)
			blocked = false
		}
		for _, l := range lanes {
			l.Flush()
		}
		f(int(sent))
		if sent == total {
			break
		}
		if !blocked {
			continue
		}
		select {
		case <-r.wake:
		case <-deadline:
			r.t.Fatalf("stuck: %d of %d events sent", sent, total)
		}
	}
	for {
		r.mu.Lock()
		n := 0
		for _, k := range r.inFlight {
			n += k
		}
		out := r.outcomes
		r.mu.Unlock()
		if n == 0 {
			r.check(out, total)
			return out
		}
		select {
		case <-r.wake:
		case <-deadline:
			r.t.Fatalf("%d batches were never completed", n)
		}
	}
}

// check checks what must be true of all outcomes.
func (r *rig) check(out []load.Outcome, total uint64) {
	r.t.Helper()
	events := uint64(0)
	for _, o := range out {
		assert.True(r.t, o.Acked+o.Failed+o.Unknown == o.Events,
			"%d acked + %d failed + %d unknown of %d events", o.Acked, o.Failed, o.Unknown, o.Events)
		assert.True(r.t, o.Sent <= o.Done, "sent at %v, done at %v", o.Sent, o.Done)
		assert.True(r.t, o.Acked <= 0 || o.Sent >= 0, "acked but never sent")
		events += uint64(o.Events)
	}
	for k, n := range r.completed {
		if n != 1 {
			r.t.Errorf("batch %d of lane %d was completed %d times", k[1], k[0], n)
		}
	}
	assert.Equal(r.t, events, total, "events completed")
}

// tallies are the sums of outcomes.
type tallies struct{ acked, failed, unknown, retries int }

func tally(out []load.Outcome) (c tallies) {
	for _, o := range out {
		c.acked += int(o.Acked)
		c.failed += int(o.Failed)
		c.unknown += int(o.Unknown)
		c.retries += int(o.Retries)
	}
	return c
}

// eventsCluster starts a cluster of kfake with the topic "events".
func eventsCluster(t testing.TB, partitions int32, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.SeedTopics(partitions, "events"), kfake.NumBrokers(1)}, opts...)...)
	assert.OK(t, err)
	t.Cleanup(c.Close)
	return c
}

// testEnd returns a channel that is closed when everything that the test opens
// afterwards is closed. A broker's answer that must never come waits for it.
func testEnd(t testing.TB) <-chan struct{} {
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	return end
}

func fakeURL(addrs []string) string { return "kafka://" + strings.Join(addrs, ",") + "/events" }

// openProducer opens a producer with the options given, as "name=value".
func openProducer(t testing.TB, addrs []string, change func(*cluster.Config), given ...string) *producer {
	t.Helper()
	cfg := configFor(t, addrs, change, given...)
	p := assert.Value(newProducer(context.Background(), cfg, nil))(t)
	t.Cleanup(func() { assert.OK(t, p.Close()) })
	return p
}

func configFor(t testing.TB, addrs []string, change func(*cluster.Config), given ...string) *cluster.Config {
	t.Helper()
	opts := map[string][]string{}
	for _, g := range given {
		k, v, _ := strings.Cut(g, "=")
		opts[k] = append(opts[k], v)
	}
	cfg := assert.Value(cluster.ParseConfig(spec(t, fakeURL(addrs), opts)))(t)
	if change != nil {
		change(cfg)
	}
	return cfg
}

func readBack(t testing.TB, addrs []string, want int, opts ...kgo.Opt) []*kgo.Record {
	t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addrs...), kgo.ConsumeTopics("events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	assert.OK(t, err)
	defer cl.Close()
	ctx := testkit.Minute(t)
	ends := assert.Value(kadm.NewClient(cl).ListEndOffsets(ctx, "events"))(t)
	total := 0
	ends.Each(func(o kadm.ListedOffset) { total += int(o.Offset) })
	assert.Must(t, total == want, "%d records at the broker, want %d", total, want)
	var recs []*kgo.Record
	for len(recs) < want {
		fs := cl.PollFetches(ctx)
		assert.OK(t, fs.Err(), "read back %d of %d", len(recs), want)
		fs.EachRecord(func(r *kgo.Record) { recs = append(recs, r) })
	}
	return recs
}

func endOffsets(t testing.TB, addrs []string) map[int32]int64 {
	t.Helper()
	cl := assert.Value(kgo.NewClient(kgo.SeedBrokers(addrs...)))(t)
	defer cl.Close()
	listed := assert.Value(kadm.NewClient(cl).ListEndOffsets(context.Background(), "events"))(t)
	ends := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends
}
