package load

import (
	"sync"
	"sync/atomic"
	"time"
)

// An inbox passes outcomes from the goroutines that read answers to the sending thread
// that owns the lane. The lock is held for one copy per slice of outcomes, never per
// event. Only the thread itself records them, in memory that no other thread uses.
type inbox struct {
	mu     sync.Mutex
	out    []Outcome
	ready  []readiness
	filled atomic.Bool

	spareOut   []Outcome // used only by the thread
	spareReady []readiness
}

// A readiness reports a lane (or, with lane -1, any stream) that may be tried again.
type readiness struct {
	lane int
	at   time.Duration
}

func (b *inbox) complete(out []Outcome) {
	b.mu.Lock()
	b.out = append(b.out, out...)
	b.filled.Store(true)
	b.mu.Unlock()
}

func (b *inbox) addReady(lane int, at time.Duration) {
	b.mu.Lock()
	b.ready = append(b.ready, readiness{lane, at})
	b.filled.Store(true)
	b.mu.Unlock()
}

// take returns what arrived since the last call. The slices are valid until the next
// call.
func (b *inbox) take() ([]Outcome, []readiness) {
	if !b.filled.Load() {
		return nil, nil
	}
	b.mu.Lock()
	out, ready := b.out, b.ready
	b.out, b.ready = b.spareOut[:0], b.spareReady[:0]
	b.filled.Store(false)
	b.mu.Unlock()
	b.spareOut, b.spareReady = out, ready
	return out, ready
}
