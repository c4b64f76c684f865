package run

import (
	"sync"
	"time"

	"carronade/load"
)

// A returner stands between a target and a closed-loop round trip: an acked shot
// goes back to its caller when its events were consumed, not before. What is
// not consumed within a bound goes back all the same; the ledger will tell
// what became of it.
type returner struct {
	load.Target
	b    *readback
	sink load.Sink

	mu    sync.Mutex
	held  map[shotKey]heldOutcome
	lanes map[load.Lane]*returnerLane
}

type shotKey struct {
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
func (r *returner) Start(sink load.Sink) {
	r.sink = sink
	r.Target.Start(&returnerSink{Sink: sink, r: r})
	go r.watch(r.b.run.Done())
}

// watch sends back what was held too long.
func (r *returner) watch(done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			r.expire(anyLane, mostHeld)
		}
	}
}

// Route implements load.Target.
func (r *returner) Route(stripe int32) load.Lane {
	l := r.Target.Route(stripe)
	if l == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.lanes[l]
	if held == nil {
		held = &returnerLane{Lane: l, r: r}
		r.lanes[l] = held
	}
	return held
}

// release says that events of a shot, all or a part, were consumed; with the
// last of them the shot goes back to its caller. It goes back under the lock,
// so that a lane which finds nothing held when it closes has had everything.
func (r *returner) release(part load.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := shotKey{part.Lane, part.Seq}
	h, ok := r.held[k]
	if !ok {
		return
	}
	if h.left -= part.Events; h.left > 0 {
		r.held[k] = h
		return
	}
	delete(r.held, k)
	r.sink.Settle([]load.Outcome{h.o})
}

const anyLane int32 = -1

// expire sends back what was held for most or longer.
func (r *returner) expire(lane int32, most time.Duration) {
	now := r.sink.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, h := range r.held {
		if (lane == anyLane || k.lane == lane) && now-h.since >= most {
			r.sink.Settle([]load.Outcome{h.o})
			delete(r.held, k)
		}
	}
}

// A returnerSink holds back what was acked.
type returnerSink struct {
	load.Sink
	r *returner
}

// Settle implements load.Sink.
func (s *returnerSink) Settle(out []load.Outcome) {
	var pass, wait []load.Outcome
	s.r.mu.Lock()
	for i := range out {
		if out[i].Acked == 0 {
			pass = append(pass, out[i])
			continue
		}
		wait = append(wait, out[i])
		s.r.held[shotKey{out[i].Lane, out[i].Seq}] = heldOutcome{out[i], out[i].Acked, s.Now()}
	}
	s.r.mu.Unlock()
	s.Sink.Settle(pass)
	if len(wait) > 0 {
		s.r.b.pair.Fired(wait) // may release at once: the event can be consumed before its ack came
	}
}

// A returnerLane lets go of what is held when its lane is closed.
type returnerLane struct {
	load.Lane
	r *returner
}

// Close implements load.Lane.
func (l *returnerLane) Close() error {
	err := l.Lane.Close()
	l.r.expire(int32(l.ID()), 0)
	return err
}
