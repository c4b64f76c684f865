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

	mu   sync.Mutex
	held map[gateKey]heldOutcome
}

type gateKey struct {
	lane int32
	seq  uint64
}

type heldOutcome struct {
	o     load.Outcome
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
	return &gateLane{Lane: l, g: g}
}

// release sends a consumed shot back to its caller.
func (g *gate) release(o load.Outcome) {
	g.mu.Lock()
	k := gateKey{o.Lane, o.Seq}
	h, ok := g.held[k]
	delete(g.held, k)
	g.mu.Unlock()
	if ok {
		g.sink.Settle([]load.Outcome{h.o})
	}
}

const anyLane int32 = -1

// expire sends back what was held for most or longer.
func (g *gate) expire(lane int32, most time.Duration) {
	now := g.sink.Now()
	var out []load.Outcome
	g.mu.Lock()
	for k, h := range g.held {
		if (lane == anyLane || k.lane == lane) && now-h.since >= most {
			out = append(out, h.o)
			delete(g.held, k)
		}
	}
	g.mu.Unlock()
	for i := range out {
		g.sink.Settle(out[i : i+1])
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
		s.g.held[gateKey{out[i].Lane, out[i].Seq}] = heldOutcome{out[i], s.Now()}
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
