package load

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Gate is an allowance of events: a run with a gate fires no more events than were
// added to it. Safe for concurrent use.
type Gate struct {
	closed atomic.Bool

	counts sync.Mutex
	left   int64         // allowed and not taken
	since  time.Duration // since when there was an allowance after there was none, as far as it is known
	taken  int64         // taken, and not yet fired or returned

	mu    sync.Mutex
	wakes []func()
}

// NewGate returns a gate that allows no events yet.
func NewGate() *Gate { return &Gate{} }

// Add allows n more events.
func (g *Gate) Add(n uint64) { g.addAt(n, 0) }

// addAt is Add at a time of the run, so that waiting for it is not taken for the generator's
// delay.
func (g *Gate) addAt(n uint64, at time.Duration) {
	g.counts.Lock()
	if g.left <= 0 {
		g.since = max(g.since, at)
	}
	g.left += int64(n)
	g.counts.Unlock()
	g.wake()
}

// Close announces that no more events are added: the run ends when the gate is empty.
func (g *Gate) Close() {
	g.closed.Store(true)
	g.wake()
}

// Left returns the unused allowance.
func (g *Gate) Left() uint64 {
	g.counts.Lock()
	defer g.counts.Unlock()
	return uint64(max(g.left, 0))
}

func (g *Gate) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.wakes {
		f()
	}
}

func (g *Gate) onChange(f func()) {
	g.mu.Lock()
	g.wakes = append(g.wakes, f)
	g.mu.Unlock()
}

// take claims up to n events and returns how many it got, and since when they were allowed.
// The caller must complete them.
func (g *Gate) take(n int) (got int, since time.Duration) {
	g.counts.Lock()
	defer g.counts.Unlock()
	got = int(min(int64(n), max(g.left, 0)))
	g.left -= int64(got)
	g.taken += int64(got)
	return got, g.since
}

// complete records what became of events that were taken: fired, or returned.
func (g *Gate) complete(fired, back int) {
	g.counts.Lock()
	g.left += int64(back)
	g.taken -= int64(fired + back)
	g.counts.Unlock()
}

// empty reports whether the gate is closed with nothing left, and nothing taken that
// may still be returned.
func (g *Gate) empty() bool {
	if !g.closed.Load() {
		return false
	}
	g.counts.Lock()
	defer g.counts.Unlock()
	return g.left <= 0 && g.taken == 0
}

// takeFrom claims up to n from a shared budget.
func takeFrom(budget *atomic.Int64, n int64) int64 {
	for {
		left := budget.Load()
		if left <= 0 {
			return 0
		}
		got := min(n, left)
		if budget.CompareAndSwap(left, left-got) {
			return got
		}
	}
}
