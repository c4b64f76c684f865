package load

import (
	"sync"
	"testing"
	"time"
)

// answering is a target that settles what was fired only from within Wait.
type answering struct {
	instant
	mu    sync.Mutex
	fired []Outcome
	woken chan struct{}
	asked int
	left  bool
	waits int
}

func (a *answering) Start(s Sink)     { a.sink = s }
func (a *answering) Route(int32) Lane { return a }

func (a *answering) Fire(shots []Shot) int {
	now := a.sink.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range shots {
		a.fired = append(a.fired, Outcome{Shot: shots[i], Sent: now, Done: now, Acked: shots[i].Events, Place: -1})
	}
	return len(shots)
}

func (a *answering) Flush() {}

func (a *answering) Poll(t, of int) Waiting {
	a.asked++
	if t != 0 || of != 1 {
		return nil
	}
	return a
}

func (a *answering) Wait(until time.Duration) {
	a.mu.Lock()
	out := a.fired
	a.fired = nil
	a.mu.Unlock()
	a.waits++
	for i := range out {
		out[i].Done = a.sink.Now()
	}
	if len(out) > 0 {
		a.sink.Settle(out)
		return
	}
	select {
	case <-a.woken:
	case <-time.After(until - a.sink.Now()):
	}
}

func (a *answering) Wake() {
	select {
	case a.woken <- struct{}{}:
	default:
	}
}

func (a *answering) Leave() { a.left = true }

// Threads is fewer than there are clients, and than there may be processors.
func (a *answering) Threads(int) int { return 1 }
func (a *answering) Clients() int    { return 3 }

// Without a schedule the sending thread waits in a target that offers it, and
// what is settled there counts.
func TestThreadsWaitInTheirTarget(t *testing.T) {
	a := &answering{instant: instant{room: 7}, woken: make(chan struct{}, 1)}
	r, err := Fire(t.Context(), Plan{Hold: Limits{Events: 700}, EventsPerShot: 7, MaxInFlight: 3}, a)
	if err != nil {
		t.Fatal(err)
	}
	if r.Hold.Acked != 700 || !a.left || a.waits < 700/7/3 {
		t.Errorf("acked %d in %d waits, left: %v; want 700, with three shots in flight, and then left", r.Hold.Acked, a.waits, a.left)
	}
}

// Under a schedule it does not: answers are read beside it.
func TestScheduledThreadsWaitAlone(t *testing.T) {
	a := &scheduled{}
	r, err := Fire(t.Context(), Plan{Schedule: Constant(1000), EventsPerShot: 1, Hold: Limits{Time: 50 * time.Millisecond}}, a)
	if err != nil {
		t.Fatal(err)
	}
	if a.asked > 0 || r.Hold.Acked != 50 {
		t.Errorf("asked %d times, acked %d; want never, and 50", a.asked, r.Hold.Acked)
	}
}

// scheduled is a target that answers at once, and could be waited in.
type scheduled struct {
	instant
	asked int
}

func (s *scheduled) Route(int32) Lane       { return &s.instant }
func (s *scheduled) Room(int32, uint64) int { return 1 }
func (s *scheduled) Start(k Sink)           { s.sink, s.room = k, 1 }
func (s *scheduled) Poll(int, int) Waiting  { s.asked++; return nil }
func (s *scheduled) Threads(int) int        { s.asked++; return 1 }
