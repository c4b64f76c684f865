package load

import (
	"testing"
	"testing/synctest"
	"time"
)

// connectedTarget is a fake that takes a third of a second to start its connections.
type connectedTarget struct {
	*fake
	began time.Duration // when it was started
	ready func()        // then
}

func (c *connectedTarget) Connections() int { return c.clients }

func (c *connectedTarget) Start(s Sink) {
	c.fake.Start(s)
	c.began = s.Now()
	time.Sleep(300 * time.Millisecond)
	s.Ready(-1, s.Now())
	if c.ready != nil {
		c.ready()
	}
}

// TestLead: connections take time to start, and the first event is not late for it.
func TestLead(t *testing.T) {
	const clients = 10_000
	for _, tt := range []struct {
		name  string
		start time.Duration // StartAt, from now on; 0: none
	}{
		{"at once", 0},
		{"at a time", 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &connectedTarget{fake: newFake(RoundRobin(clients), clients, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					return at + time.Millisecond, Outcome{}
				})}
				plan := Plan{Schedule: Constant(1000), BatchEvents: 1, Threads: 1, Measurement: Limits{Time: time.Second}, Portable: true}
				if tt.start > 0 {
					plan.StartAt = time.Now().Add(tt.start)
				}
				r, err := Fire(t.Context(), plan, f)
				if err != nil {
					t.Fatal(err)
				}
				if want := -clients * leadPerConnection; f.began != want {
					t.Errorf("the target was started at %v, want %v", f.began, want)
				}
				if m := r.Measurement; m.Acked != 1000 || m.SendDelay.Max() > 0 || m.Response.Max() > time.Millisecond+time.Microsecond*20 {
					t.Errorf("%d acked, send delay up to %v, response up to %v", m.Acked, m.SendDelay.Max(), m.Response.Max())
				}
			})
		})
	}
}

// TestLeadStopped: a run that is stopped or aborted before its time 0 sends nothing.
func TestLeadStopped(t *testing.T) {
	for name, stop := range map[string]func(r *Run){
		"stop":  func(r *Run) { r.Stop(Interrupted) },
		"abort": func(r *Run) { r.Abort() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &connectedTarget{fake: newFake(RoundRobin(10_000), 10_000, nil)}
				r, err := New(Plan{Schedule: Constant(1000), Threads: 1, Measurement: Limits{Time: time.Second}, Portable: true}, f)
				if err != nil {
					t.Fatal(err)
				}
				f.ready = func() { stop(r) }
				r.Start()
				res, err := r.Wait()
				if err != nil || res.Measurement.Sent > 0 || res.Stopped != Interrupted {
					t.Errorf("%d sent, stopped: %s, %v", res.Measurement.Sent, res.Stopped, err)
				}
			})
		})
	}
}
