package run

import (
	"sync"
	"time"

	"carronade/load"
)

// A gate stands between a target and a closed-loop round trip: an acked shot
// goes back to its caller when its events were consumed, not before. What is
// not consumed within a bound goes back all the same; the ledger will tell
// what became of it.
type gate struct {
	load.Target
	b    *readback
	sink load.Sink

	mu    sync.Mutex
	held  map[gateKey]heldOutcome
	lanes map[load.Lane]*gateLane
}

type gateKey struct {
	lane int32
	seq  uint64
}

type heldOutcome struct {
	o     load.Outcome
	left  int32 // events that were not consumed so far
	since time.Duration
}

// mostHeld is how long a caller waits for its event to be consumed.
const mostHeld = 30 * time.Second

// Start implements load.Target.
func (g *gate) Start(sink load.Sink) {
	g.sink = sink
	g.Target.Start(&gateSink{Sink: sink, g: g})
	go g.watch(g.b.run.Done())
}

// watch sends back what was held too long.
func (g *gate) watch(done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			g.expire(anyLane, mostHeld)
		}
	}
}

// Route implements load.Target.
func (g *gate) Route(stripe int32) load.Lane {
	l := g.Target.Route(stripe)
	if l == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	gl := g.lanes[l]
	if gl == nil {
		gl = &gateLane{Lane: l, g: g}
		g.lanes[l] = gl
	}
	return gl
}

// release says that events of a shot, all or a part, were consumed; with the
// last of them the shot goes back to its caller. It goes back under the lock,
// so that a lane which finds nothing held when it closes has had everything.
func (g *gate) release(part load.Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := gateKey{part.Lane, part.Seq}
	h, ok := g.held[k]
	if !ok {
		return
	}
	if h.left -= part.Events; h.left > 0 {
		g.held[k] = h
		return
	}
	delete(g.held, k)
	g.sink.Settle([]load.Outcome{h.o})
}

const anyLane int32 = -1

// expire sends back what was held for most or longer.
func (g *gate) expire(lane int32, most time.Duration) {
	now := g.sink.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for k, h := range g.held {
		if (lane == anyLane || k.lane == lane) && now-h.since >= most {
			g.sink.Settle([]load.Outcome{h.o})
			delete(g.held, k)
		}
	}
}

// A gateSink holds back what was acked.
type gateSink struct {
	load.Sink
	g *gate
}

// Settle implements load.Sink.
func (s *gateSink) Settle(out []load.Outcome) {
	var pass, wait []load.Outcome
	s.g.mu.Lock()
	for i := range out {
		if out[i].Acked == 0 {
			pass = append(pass, out[i])
			continue
		}
		wait = append(wait, out[i])
		s.g.held[gateKey{out[i].Lane, out[i].Seq}] = heldOutcome{out[i], out[i].Acked, s.Now()}
	}
	s.g.mu.Unlock()
	s.Sink.Settle(pass)
	if len(wait) > 0 {
		s.g.b.pair.Fired(wait) // may release at once: the event can be consumed before its ack came
	}
}

// A gateLane lets go of what is held when its lane is closed.
type gateLane struct {
	load.Lane
	g *gate
}

// Close implements load.Lane.
func (l *gateLane) Close() error {
	err := l.Lane.Close()
	l.g.expire(int32(l.ID()), 0)
	return err
}
