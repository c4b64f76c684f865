package load

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A disturbance is a time in which the generator's own lateness reached events
// that were sent on time: it was late with many events, sent them in a burst, and
// others queued behind them in the system.
//
// A first-come, first-served system delays nothing by more than the generator was late
// with anything before it. So times of events that are due within a disturbance are
// too long by at most that.
type disturbance struct {
	from, to time.Duration // to is Never until what is in flight is back to its earlier level
	late     time.Duration // the most that the generator was late in it
}

// leastLate is the least lateness of a sending thread that begins a disturbance.
// What a shorter one delays is accounted for event by event.
const leastLate = time.Millisecond

// mostDisturbances bounds those that are remembered. Responses that take longer
// than the oldest of them is ago count as disturbed.
const mostDisturbances = 64

// disturbances are those of a run. Threads read them without a lock.
type disturbances struct {
	mu   sync.Mutex
	open int // threads whose events in flight are not back to their earlier level
	list atomic.Pointer[disturbanceList]
}

// A disturbanceList is in order of time, and is never changed.
type disturbanceList struct {
	d         []disturbance
	forgotten disturbance // covers those that are not remembered any more
}

// begin notes that a thread was late between two moments. again: the thread has
// begun one already that has not ended.
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

// end notes that what a thread has in flight is back to its earlier level.
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

// copy returns a list like the newest, with room for one more.
func (x *disturbances) copy() *disturbanceList {
	next := &disturbanceList{}
	if old := x.list.Load(); old != nil {
		next.forgotten = old.forgotten
		next.d = append(make([]disturbance, 0, len(old.d)+1), old.d...)
	}
	return next
}

// add appends one, and forgets the oldest where there are too many.
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

// at returns by how much what was due at a time may have been delayed by the
// lateness of others; 0 where it was not.
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

// after reports whether nothing due from a time on was disturbed.
func (l *disturbanceList) after(due time.Duration) bool {
	return l == nil || len(l.d) == 0 || due >= l.d[len(l.d)-1].to
}
