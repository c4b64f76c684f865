package load

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A disturbance is a span of time in which the generator's own lateness affected events
// that were sent on time: it sent many events late and in a burst, and others queued
// behind them in the system.
//
// A first-come, first-served system delays no event by more than the lateness of the
// events before it. So the times of events that are due within a disturbance are too
// long by at most that lateness.
type disturbance struct {
	from, to time.Duration // to is Never until what is in flight is back to its earlier level
	late     time.Duration // the greatest lateness of the generator in it
}

// leastLate is the smallest lateness of a sending thread that begins a disturbance. The
// delay caused by a shorter one is accounted for event by event.
const leastLate = time.Millisecond

// mostDisturbances limits how many are remembered individually. Events due earlier than
// the oldest of them may count as disturbed.
const mostDisturbances = 64

// disturbances are the disturbances of a run. Threads read them without a lock.
type disturbances struct {
	mu   sync.Mutex
	open int // threads whose events in flight are not back to their earlier level
	list atomic.Pointer[disturbanceList]
}

// A disturbanceList is sorted by time and immutable.
type disturbanceList struct {
	d         []disturbance
	forgotten disturbance // covers those that are no longer in d
}

// begin records that a thread was late between two moments. again: the disturbance that
// the thread began earlier has not ended.
func (x *disturbances) begin(from, to time.Duration, again bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !again {
		x.open++
	}
	next := x.copy()
	if n := len(next.d); n > 0 && next.d[n-1].to == Never {
		d := &next.d[n-1]
		d.from, d.late = min(d.from, from), max(d.late, to-from)
	} else {
		next.add(disturbance{from: from, to: Never, late: to - from})
	}
	x.list.Store(next)
}

// end records that a thread's events in flight are back to their earlier level.
func (x *disturbances) end(at time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open--; x.open > 0 {
		return
	}
	next := x.copy()
	next.d[len(next.d)-1].to = at
	x.list.Store(next)
}

// copy returns a copy of the newest list, with room for one more.
func (x *disturbances) copy() *disturbanceList {
	next := &disturbanceList{}
	if old := x.list.Load(); old != nil {
		next.forgotten = old.forgotten
		next.d = append(make([]disturbance, 0, len(old.d)+1), old.d...)
	}
	return next
}

// add appends a disturbance and forgets the oldest if there are too many.
func (l *disturbanceList) add(d disturbance) {
	if len(l.d) >= mostDisturbances {
		f, gone := &l.forgotten, l.d[0]
		if f.late == 0 {
			f.from = gone.from
		}
		f.to, f.late = gone.to, max(f.late, gone.late)
		l.d = slices.Delete(l.d, 0, 1)
	}
	l.d = append(l.d, d)
}

// at returns how long the lateness of other events may have delayed an event that was
// due at a time; 0 if it was not disturbed.
func (l *disturbanceList) at(due time.Duration) time.Duration {
	if l == nil {
		return 0
	}
	for i := len(l.d) - 1; i >= 0; i-- {
		d := &l.d[i]
		if due >= d.to {
			return 0
		}
		if due >= d.from {
			return d.late
		}
	}
	if f := &l.forgotten; due >= f.from && due < f.to {
		return f.late
	}
	return 0
}

// after reports whether no event due at or after a time was disturbed.
func (l *disturbanceList) after(due time.Duration) bool {
	return l == nil || len(l.d) == 0 || due >= l.d[len(l.d)-1].to
}
