//go:build conformance

package acceptance

import (
	"fmt"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// TestRiemannKilled kills the server in the middle of an open loop and starts another
// one: every event is accounted for, and the run continues.
func TestRiemannKilled(t *testing.T) {
	t.Parallel()
	for _, clients := range []string{"1", "4"} {
		t.Run(clients+" connections", func(t *testing.T) {
			t.Parallel()
			first := startStandin(t, "riemann", "--listen", "127.0.0.1:0", "--delay", "5ms")
			s := start(t, "run", "riemann://"+first.addr, "--rate", "2000/s", "--clients", clients, "--for", "6s", "--json")
			s.awaitStderr(progressText)
			pause(t, 1500*time.Millisecond)
			first.killInDebt(100 * time.Millisecond)
			pause(t, time.Second)
			second := startStandin(t, "riemann", "--listen", first.addr, "--delay", "5ms")
			d := s.wait(runTimeout).succeeded(t).document(t)
			second.kill()
			all := d.Totals
			assert.Equal(t, all.Offered, 12_000, "offered")
			assert.True(t, all.Unknown != 0, "no event is unknown, although the server was killed with events in flight")
			assert.True(t, all.Acked >= 6_000, "acked %d events of 12000: the run did not continue", all.Acked)
			assert.True(t, len(d.Failures) != 0, "no failure is named")
			late := uint64(0)
			for _, iv := range d.Intervals {
				if iv.StartS >= 4.9 {
					late += iv.Acked
				}
			}
			assert.True(t, late != 0, "no event was acked after the server came back")
		})
	}
}

// TestRiemannFrozen freezes a server in an open loop, on one connection and on eight.
func TestRiemannFrozen(t *testing.T) {
	const measurement = 5 * time.Second
	for _, tt := range []struct {
		clients, bound string
		queueing       bool
	}{
		{"1", "10000", false},
		{"8", "10000", false},
		{"1", "1", true},
		{"8", "1", true},
	} {
		t.Run(fmt.Sprintf("%s connections, bound %s", tt.clients, tt.bound), func(t *testing.T) {
			r := startStandin(t, "riemann", "--listen", "127.0.0.1:0")
			s := start(t, "run", "riemann://"+r.addr, "--rate", "2000/s", "--clients", tt.clients, "--max-in-flight", tt.bound, "--for", measurement.String(), "--json")
			s.awaitStderr(progressText)
			pause(t, time.Second)
			freeze := r.freezeFor(time.Second)
			d := s.wait(runTimeout).succeeded(t).document(t)
			assert.Must(t, d.Response != nil && d.Queueing != nil && d.Service != nil, "the report has no response, queueing or service")
			d.checkFreeze(t, freeze, measurement, 1.05)
			if d.Totals.Acked != 10_000 || d.Response.Count != 10_000 {
				t.Errorf("acked %d, response times of %d, want 10000", d.Totals.Acked, d.Response.Count)
			}
			d.checkQueueing(t, freeze, tt.queueing)
		})
	}
}

// TestRiemannStopsReading freezes a server for a second, at a rate that fills its
// socket, so that writes block.
func TestRiemannStopsReading(t *testing.T) {
	r := startStandin(t, "riemann", "--listen", "127.0.0.1:0")
	const measurement = 5 * time.Second
	s := start(t, "run", "riemann://"+r.addr, "--rate", "200k/s", "--batch-events", "100", "--max-in-flight", "100k", "--for", measurement.String(), "--json")
	s.awaitStderr(progressText)
	pause(t, time.Second)
	freeze := r.freezeFor(time.Second)
	d := s.wait(runTimeout).succeeded(t).document(t)
	assert.Equal(t, d.Totals.Acked, 1_000_000, "events acked")
	d.checkFreeze(t, freeze, measurement, 1.1)
	if delay := d.SendDelay.P99US / 1e6; delay > freeze.least.Seconds()/2+d.Freezes.TotalS {
		t.Errorf("send delay p99 is %.3f s: a full socket is not a delay of the generator", delay)
	}
}
