package load

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit/assert"
)

// connectedTarget is a fake that takes a third of a second to start its connections.
type connectedTarget struct {
	*fake
	began time.Duration // when it was started
	ready func()        // then
}

func (c *connectedTarget) Capabilities() TargetCapabilities {
	return TargetCapabilities{Connections: c.Clients}
}

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
				r := assert.Value(Fire(t.Context(), plan, f))(t)
				want := -clients * leadPerConnection
				assert.True(t, f.began == want, "the target was started at %v, want %v", f.began, want)
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
				assert.OK(t, err)
				f.ready = func() { stop(r) }
				r.Start()
				res, err := r.Wait()
				assert.True(t, err == nil && res.Measurement.Sent == 0 && res.Stopped == Interrupted,
					"%d sent, stopped: %s, %v", res.Measurement.Sent, res.Stopped, err)
			})
		})
	}
}

// A preparedLane notes when it was prepared.
type preparedLane struct {
	*fakeLane
	prepared []time.Duration
	takes    time.Duration // to be prepared
}

func (l *preparedLane) Capabilities() LaneCapabilities {
	return LaneCapabilities{Prepare: func() {
		l.prepared = append(l.prepared, l.f.sink.Now())
		time.Sleep(l.takes)
	}}
}

// preparedTarget has lanes that can be prepared.
type preparedTarget struct {
	*connectedTarget
	shares bool
	lanes  []*preparedLane
}

func (p *preparedTarget) Route(s int32) Lane { return p.lanes[p.Client(s)] }

func (p *preparedTarget) Capabilities() TargetCapabilities {
	return TargetCapabilities{Connections: p.Clients, Shares: p.shares}
}

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
				assert.Must(t, err == nil && r.Measurement.Acked == 1000, "%d acked, %v", r.Measurement.Acked, err)
				for i, l := range p.lanes {
					assert.Must(t, len(l.prepared) == tt.prepared && (tt.prepared <= 0 || l.prepared[0] < 0),
						"lane %d was prepared at %v, want %d times before 0", i, l.prepared, tt.prepared)
				}
			})
		})
	}
}

// A fakeMemory has a size, and takes a time to be collected.
type fakeMemory struct {
	bytes uint64
	takes time.Duration
	run   *Run
	began []time.Duration // when its collections began
}

func (h *fakeMemory) size() uint64 { return h.bytes }

func (h *fakeMemory) collect() {
	h.began = append(h.began, h.run.Now())
	time.Sleep(h.takes)
}

// TestCollectEarly: before time 0 of a run with many connections the heap is collected once, if
// that fits; and what begins with time 0 waits neither for a collection nor for a lane.
func TestCollectEarly(t *testing.T) {
	const (
		clients   = 10_000 // a lead of 800 ms, of which the connections take 300
		connected = 300*time.Millisecond - clients*leadPerConnection
	)
	for _, tt := range []struct {
		name      string
		clients   int
		bytes     uint64
		takes     time.Duration // the collection
		prepares  time.Duration // each lane of the first 10 takes to be prepared
		collected []time.Duration
	}{
		{name: "fits", clients: clients, bytes: 200 << 20, takes: 200 * time.Millisecond, collected: []time.Duration{connected}},
		{name: "too large", clients: clients, bytes: 500 << 20},
		{name: "slower than estimated", clients: clients, bytes: 200 << 20, takes: time.Second, collected: []time.Duration{connected}},
		{name: "just fits after the lanes", clients: clients, bytes: 200 << 20, prepares: 29 * time.Millisecond, collected: []time.Duration{connected + 290*time.Millisecond}},
		{name: "too late after the lanes", clients: clients, bytes: 200 << 20, prepares: 30 * time.Millisecond},
		{name: "lanes later than time 0", clients: clients, bytes: 1 << 20, prepares: 100 * time.Millisecond},
		{name: "few", clients: manyConnections - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(RoundRobin(tt.clients), tt.clients, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					return at + time.Millisecond, Outcome{}
				})
				p := &preparedTarget{connectedTarget: &connectedTarget{fake: f}}
				for i, l := range f.lanes {
					p.lanes = append(p.lanes, &preparedLane{fakeLane: l})
					if i < 10 {
						p.lanes[i].takes = tt.prepares
					}
				}
				r, err := New(Plan{Schedule: Constant(1000), BatchEvents: 1, Threads: 1, Measurement: Limits{Time: time.Second}, Portable: true}, p)
				assert.OK(t, err)
				h := &fakeMemory{bytes: tt.bytes, takes: tt.takes, run: r}
				r.memory = h
				r.Start()
				want := time.Duration(0)
				if tt.clients < manyConnections {
					want = 300 * time.Millisecond // without a lead, time 0 comes before the connections
				}
				assert.Equal(t, r.Now(), want, "when the start returned")
				assert.Value(r.Wait())(t)
				synctest.Wait()
				assert.True(t, slices.Equal(h.began, tt.collected), "collections began at %v, want %v", h.began, tt.collected)
			})
		})
	}
}

// TestMemorySize: the size of the process's heap counts what is live.
func TestMemorySize(t *testing.T) {
	const bytes = 32 << 20
	b := make([]byte, bytes)
	got := (goMemory{}).size()
	assert.True(t, got >= bytes, "%d bytes, and %d are live", got, bytes)
	runtime.KeepAlive(b)
}

// A wait is never too short, and the number of waits follows from the times.
func TestLateness(t *testing.T) {
	const wait, span = time.Millisecond, 20 * time.Millisecond
	late := Lateness(t.Context(), wait, span)
	assert.True(t, len(late) != 0 && len(late) <= int(span/wait) && late[0] >= 0 && slices.IsSorted(late), "got %v", late)
	ended, end := context.WithCancel(t.Context())
	end()
	got := Lateness(ended, wait, span)
	assert.True(t, len(got) == 0, "an ended context: got %v", got)
}

// TestLaneHeap: whatever happens to lanes, the one on top is as a search finds it.
func TestLaneHeap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const most = 4
	th := &thread{run: &Run{}, shared: &backlog{}}
	for i := range 50 {
		ls := &laneState{index: i}
		ls.slots.fill(most, 0)
		th.lanes = append(th.lanes, ls)
		th.freest.add()
		th.updateRank(ls)
	}
	turns := make([]int, len(th.lanes))
	// better reports whether a lane comes before another.
	better := func(a, b *laneState) bool {
		if a.slots.n != b.slots.n {
			return a.slots.n > b.slots.n
		}
		sa, sb := a.slots.iterate(), b.slots.iterate()
		fa, fb := max(a.roomSince, sa.next()), max(b.roomSince, sb.next())
		if fa != fb {
			return fa < fb
		}
		if a, b := turns[a.index], turns[b.index]; a != b {
			return a < b
		}
		return a.index < b.index
	}
	for step := range 20_000 {
		now := time.Duration(step / 3)
		ls := th.lanes[rnd.IntN(len(th.lanes))]
		switch rnd.IntN(6) {
		case 0:
			ls.full = true
		case 1:
			ls.full, ls.roomSince = false, now
		case 2:
			if ls.refire == nil {
				ls.refire = make([]Batch, 1)
			} else {
				ls.refire = nil
			}
		case 3:
			if ls.slots.n < most {
				ls.slots.push(now, 1)
			}
		default:
			if top := th.freest.top(); top >= 0 {
				ls = th.lanes[top]
				ls.slots.pop(1)
				turns[top] = step + 1
				th.rankFired(ls)
			}
		}
		th.updateRank(ls)
		var want *laneState
		for _, ls := range th.lanes {
			if !ls.full && len(ls.refire) == 0 && ls.slots.n > 0 && (want == nil || better(ls, want)) {
				want = ls
			}
		}
		got := (*laneState)(nil)
		if top := th.freest.top(); top >= 0 {
			got = th.lanes[top]
		}
		assert.Must(t, got == want, "step %d: %+v is on top, want %+v", step, got, want)
	}
}
