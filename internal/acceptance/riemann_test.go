package acceptance

import (
	"fmt"
	"testing"
	"time"
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
			first.kill()
			pause(t, time.Second)
			second := startStandin(t, "riemann", "--listen", first.addr, "--delay", "5ms")
			d := s.wait(runTimeout).succeeded(t).document(t)
			second.kill()
			all := d.Totals
			if all.Offered != 12_000 {
				t.Errorf("offered %d, want 12000", all.Offered)
			}
			if all.Unknown == 0 {
				t.Error("no event is unknown, although the server was killed with events in flight")
			}
			if all.Acked < 6_000 {
				t.Errorf("acked %d events of 12000: the run did not continue", all.Acked)
			}
			if len(d.Failures) == 0 {
				t.Error("no failure is named")
			}
			late := uint64(0)
			for _, iv := range d.Intervals {
				if iv.StartS >= 4.9 {
					late += iv.Acked
				}
			}
			if late == 0 {
				t.Error("no event was acked after the server came back")
			}
		})
	}
}

// TestRiemannFrozen is TestFrozen's closed form for Riemann: with events due
// evenly over a measurement of length T and a freeze of length f, the 99th percentile
// of the response times is f - T/100; on one connection and on eight.
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
			frozen := r.freezeFor(time.Second)
			d := s.wait(runTimeout).succeeded(t).document(t)
			if d.Response == nil || d.Queueing == nil || d.Service == nil {
				t.Fatal("the report has no response, queueing or service")
			}
			want, got := (frozen - measurement/100).Seconds(), d.Response.P99US/1e6
			t.Logf("frozen %v; response p99 %.3f s, closed form %.3f s; queueing max %.3f s, service max %.3f s", frozen, got, want, d.Queueing.MaxUS/1e6, d.Service.MaxUS/1e6)
			if got < want*0.95 || got > want*1.05 {
				t.Errorf("response p99 is %.3f s, the closed form %.3f s", got, want)
			}
			if d.Totals.Acked != 10_000 || d.Response.Count != 10_000 {
				t.Errorf("acked %d, response times of %d, want 10000", d.Totals.Acked, d.Response.Count)
			}
			queueing := d.Queueing.MaxUS / 1e6
			if tt.queueing && queueing < frozen.Seconds()*0.9 {
				t.Errorf("queueing is %.3f s at most: it lacks the waiting for the bound", queueing)
			}
			if !tt.queueing && queueing > frozen.Seconds()*0.5 {
				t.Errorf("queueing is %.3f s at most though the bound is wide", queueing)
			}
		})
	}
}

// TestRiemannStopsReading freezes a server for a second, at a rate that fills its
// socket, so that writes block.
func TestRiemannStopsReading(t *testing.T) {
	r := startStandin(t, "riemann", "--listen", "127.0.0.1:0")
	s := start(t, "run", "riemann://"+r.addr, "--rate", "200k/s", "--batch-events", "100", "--max-in-flight", "100k", "--for", "5s", "--json")
	s.awaitStderr(progressText)
	pause(t, time.Second)
	frozen := r.freezeFor(time.Second)
	d := s.wait(runTimeout).succeeded(t).document(t)
	if d.Totals.Acked != 1_000_000 {
		t.Errorf("acked %d of 1000000", d.Totals.Acked)
	}
	want := (frozen - 50*time.Millisecond).Seconds()
	if got := d.Response.P99US / 1e6; got < want*0.95 || got > want*1.1 {
		t.Errorf("response p99 is %.3f s, the closed form %.3f s", got, want)
	}
	if delay := d.SendDelay.P99US / 1e6; delay > frozen.Seconds()/2 {
		t.Errorf("send delay p99 is %.3f s: a full socket is not a delay of the generator", delay)
	}
}
