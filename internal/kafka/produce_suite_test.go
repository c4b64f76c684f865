package kafka

import (
	"context"
	"os"
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
	"carronade/internal/standin/standintest"
	"carronade/load"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// An answerDelay delays answers for a time, or until it is set again.
type answerDelay struct {
	mu  sync.Mutex
	by  time.Duration
	end chan struct{} // closed when it is set again
}

func (d *answerDelay) set(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.end != nil {
		close(d.end)
		d.end = nil
	}
	if d.by = by; by > 0 {
		d.end = make(chan struct{})
	}
}

func (d *answerDelay) wait() {
	d.mu.Lock()
	by, end := d.by, d.end
	d.mu.Unlock()
	if by > 0 {
		select {
		case <-time.After(by):
		case <-end:
		}
	}
}

// Both engines do what the core requires of every target.
func TestSuite(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	for name, opts := range map[string]map[string]string{
		"acks 1, fresh, compressed": {"fresh": "true", "compression": "lz4", "key": "uniform(10)"},
		"idempotent":                {"acks": "all", "idempotent": "true"},
		"engine client":             {"engine": "client"},
		"engine client, idempotent": {"engine": "client", "profile": "java"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := eventsCluster(t, 3, kfake.NumBrokers(2))
			var refused atomic.Bool
			var slow answerDelay
			c.ControlKey(wire.ProduceKey, func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				// This delays the whole cluster: kfake's own sleep of a request is not safe when one ends as the next begins.
				slow.wait()
				if refused.Load() {
					return answerAll(req.(*kmsg.ProduceRequest), kerr.MessageTooLarge.Code, 0), nil, true
				}
				return nil, nil, false
			})
			protocoltest.Run(t, protocoltest.System{
				Kind: Kind{}, URL: fakeURL(c.ListenAddrs()), Options: opts,
				Events: func() (sum uint64) {
					for _, end := range endOffsets(t, c.ListenAddrs()) {
						sum += uint64(end)
					}
					return sum
				},
				Slow:       slow.set,
				Refuse:     refused.Store,
				RefuseWant: load.TooLarge,
			})
		})
	}
}

// A connection takes little memory: buffers are borrowed while they are in use.
func TestConnectionMemory(t *testing.T) {
	testkit.Need(t, "some seconds")
	cert, key := testkit.NewAuthority("test").Files(t)
	t.Run("TCP", func(t *testing.T) {
		s := standintest.Spawn(t, "kafka", "--topic", "events:1")
		protocoltest.System{Kind: Kind{}, URL: "kafka://" + s.Addr() + "/events"}.Memory(t, 300, 1300, 16<<10)
	})
	t.Run("TLS", func(t *testing.T) {
		s := standintest.Spawn(t, "kafka", "--topic", "events:1", "--tls-cert", cert, "--tls-key", key)
		protocoltest.System{Kind: Kind{}, URL: "kafka://" + s.Addr() + "/events", Options: map[string]string{"tls": "true", "tls-ca": cert}}.Memory(t, 50, 250, 48<<10)
	})
}

// TestStreamNeeds: what depends on partitions and brokers is checked when the cluster has answered.
func TestStreamNeeds(t *testing.T) {
	room := protocol.Room{Memory: 1 << 30, From: "this machine has %s free", Files: 20_000}
	for _, tt := range []struct {
		clients, partitions, brokers int
		want                         string
	}{
		{100, 10_000, 3, ""},
		{6000, 12, 3, ""},
		{1000, 10_000, 3, "--clients 1,000 takes"},
		{1, 2_000_000, 1, "--partitions 2,000,000 takes"},
		{9000, 12, 3, "--clients 9,000 takes about 27032 open files"},
		{9000, 3, 3, ""}, // a broker that leads nothing gets no connection
	} {
		p := &producer{cfg: &cluster.Config{Clients: tt.clients}}
		v := &view{leaders: []int32{noLeader}}
		for i := range tt.partitions - 1 {
			v.leaders = append(v.leaders, int32(i%tt.brokers))
		}
		err := room.Check(p.streamNeeds(v))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%d clients, %d partitions, %d brokers: got %v, want %q", tt.clients, tt.partitions, tt.brokers, err, tt.want)
		}
	}
}

// spec returns a spec as a workload makes it.
func spec(t testing.TB, rawURL string, given map[string][]string) protocol.Spec {
	t.Helper()
	return protocoltest.Spec(t, Kind{}.Options(), rawURL, given)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	assert.OK(t, os.WriteFile(path, []byte(text), 0o600))
}

// A rig drives a producer as the engine does, with a limit of batches in flight for each lane, and collects every outcome.
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
	return kafkatest.Fake(t, append([]kfake.Opt{kfake.SeedTopics(partitions, "events")}, opts...)...)
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
	cl := assert.Value(kgo.NewClient(append(opts, kgo.SeedBrokers(addrs...), kgo.ConsumeTopics("events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...))(t)
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
