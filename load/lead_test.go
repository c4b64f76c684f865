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

// A preparedLane notes when it was prepared.
type preparedLane struct {
	*fakeLane
	prepared []time.Duration
}

func (l *preparedLane) Prepare() { l.prepared = append(l.prepared, l.f.sink.Now()) }

// preparedTarget has lanes that can be prepared.
type preparedTarget struct {
	*connectedTarget
	shares bool
	lanes  []*preparedLane
}

func (p *preparedTarget) Shares() bool       { return p.shares }
func (p *preparedTarget) Route(s int32) Lane { return p.lanes[p.Client(s)] }

// TestPrepare: each of many lanes is prepared once, before time 0; of few, none.
func TestPrepare(t *testing.T) {
	for _, tt := range []struct {
		name     string
		clients  int
		shares   bool
		prepared int // each lane
	}{
		{"many", 10_000, false, 1},
		{"many that share", 10_000, true, 1},
		{"few", manyConnections - 1, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(RoundRobin(2*tt.clients), tt.clients, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					return at + time.Millisecond, Outcome{}
				})
				p := &preparedTarget{connectedTarget: &connectedTarget{fake: f}, shares: tt.shares}
				for _, l := range f.lanes {
					p.lanes = append(p.lanes, &preparedLane{fakeLane: l})
				}
				r, err := Fire(t.Context(), Plan{Schedule: Constant(1000), BatchEvents: 1, Threads: 2, Measurement: Limits{Time: time.Second}, Portable: true}, p)
				if err != nil || r.Measurement.Acked != 1000 {
					t.Fatalf("%d acked, %v", r.Measurement.Acked, err)
				}
				for i, l := range p.lanes {
					if len(l.prepared) != tt.prepared || tt.prepared > 0 && l.prepared[0] >= 0 {
						t.Fatalf("lane %d was prepared at %v, want %d times before 0", i, l.prepared, tt.prepared)
					}
				}
			})
		})
	}
}
