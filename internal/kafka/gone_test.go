package kafka

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/test/testkit/assert"
)

// After a broker or a leader disappears permanently, a run of a number of events ends
// soon after the timeout of one batch: the timeouts do not add up.
func TestGonePermanently(t *testing.T) {
	t.Parallel()
	const (
		timeout = 1500 * time.Millisecond
		events  = 10_000 // 500 batches a partition, 5 at a time: added up, the timeouts take longer than a rig waits
	)
	for _, tt := range []struct {
		name       string
		idempotent bool
		leader     bool // only the leader is gone
	}{
		{"a broker", false, false},
		{"a broker, idempotent", true, false},
		{"a leader", false, true},
		{"a leader, idempotent", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := eventsCluster(t, 2)
			p := openProducer(t, c.ListenAddrs(), func(cfg *cluster.Config) {
				cfg.RequestTimeout, cfg.DeliveryTimeout = timeout, timeout
				if tt.idempotent {
					cfg.RequestTimeout = time.Minute // the other limit decides
				}
			}, fmt.Sprintf("idempotent=%v", tt.idempotent))
			r := newRig(t, p)
			r.events = 10
			gone := false
			out := r.sendAnd(events, func(fired int) {
				if gone || fired < events/10 {
					return
				}
				gone = true
				if !tt.leader {
					c.Close()
					return
				}
				v := *p.metadata.view.Load()
				v.leaders = []int32{noLeader, v.leaders[1]}
				p.senders[0].update(&v)
			})
			if got := strings.Join(p.absent.Warnings(), "\n"); tt.leader == strings.Contains(got, "connecting to ") {
				t.Errorf("warnings in the report: %q", got)
			}
			got := tally(out)
			assert.True(t, got.failed >= events*4/10 && got.acked != 0, "%+v of %d events", got, events)
			for _, o := range out {
				assert.Must(t, (o.Failed <= 0 || o.Class != load.OK) && (o.Failed <= 0 || o.Text != ""), "failed without a reason: %+v", o)
			}
		})
	}
}

// When a leader comes back after batches failed, its lane serves the partition again.
func TestLeaderComesBack(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 2)
	p := openProducer(t, c.ListenAddrs(), func(cfg *cluster.Config) { cfg.RequestTimeout = time.Second })
	q := &readySink{countSink: countSink{start: time.Now(), completed: make(chan int, 10)}, ready: make(chan int, 10)}
	p.Start(q)
	before := p.Route(0)
	v := *p.metadata.view.Load()
	with := v.leaders
	v.leaders = []int32{noLeader, with[1]}
	p.senders[0].update(&v)
	assert.Equal(t, <-q.ready, -1, "Ready()")
	l := p.Route(0)
	assert.True(t, l != nil && l != before, "lane %v serves a partition that had no leader for a long time", l)
	v.leaders = with
	p.senders[0].update(&v)
	assert.Equal(t, p.Route(0), before, "lane")
	for _, m := range p.Metrics() {
		assert.True(t, m.Broker >= 0, "metrics of a broker that does not exist: %+v", m)
	}
}
