package load

import (
	"context"
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

// Lateness measures how late this machine wakes a sending thread. It waits again and again
// for that long, in the same way as the threads of a scheduled run, until span is over or
// the context ends. It returns by how much each wait was too long, the least first.
func Lateness(ctx context.Context, wait, span time.Duration) []time.Duration {
	addProcs(1)
	defer addProcs(-1)
	late := make(chan []time.Duration)
	go func() { // its thread is tuned, and ends with it
		start := time.Now()
		w := newPreciseWaiter(start)
		defer w.close()
		w.prepare()
		var all []time.Duration
		for now := time.Since(start); now < span && ctx.Err() == nil; {
			until := now + wait
			for now < until { // a wait may return early
				w.wait(until, false, false)
				now = time.Since(start)
			}
			all = append(all, now-until)
		}
		late <- all
	}()
	all := <-late
	slices.Sort(all)
	return all
}

// A laneHeap has the lanes that share a backlog. On top is the one that fires next: the one with
// the most free slots; of several, the one whose next slot has been free the longest; and of
// those, the one that has not fired for the longest. With thousands of lanes, a search for it
// takes far longer than the batch, and while a thread searches it reads no answers.
//
// Ranks are in the heap itself and not in the lanes: those of thousands of lanes are not in the
// processor's cache. For the same reason a lane has four below it, which are next to each other.
type laneHeap struct {
	ranks []laneRank
	at    []int32 // where each lane of the thread is in ranks
}

// A laneRank is a lane's place in the order.
type laneRank struct {
	since time.Duration // when the next of its free slots became free
	turn  uint64        // of its last batch
	free  int32         // slots; 0 if the lane accepts nothing
	lane  int32         // index of the lane
}

func (r *laneRank) before(o *laneRank) bool {
	switch {
	case r.free != o.free:
		return r.free > o.free
	case r.since != o.since:
		return r.since < o.since
	case r.turn != o.turn:
		return r.turn < o.turn
	}
	return r.lane < o.lane
}

// add adds the next lane of the thread.
func (h *laneHeap) add() {
	n := int32(len(h.ranks)) //nolint:gosec // far fewer
	h.ranks, h.at = append(h.ranks, laneRank{lane: n}), append(h.at, n)
}

// top returns the lane that fires next; below 0: none has room.
func (h *laneHeap) top() int {
	if len(h.ranks) == 0 || h.ranks[0].free == 0 {
		return -1
	}
	return int(h.ranks[0].lane)
}

// move moves the lane that is at i, and now has rank r, to its place.
func (h *laneHeap) move(i int, r laneRank) {
	for i > 0 {
		up := (i - 1) / 4
		if !r.before(&h.ranks[up]) {
			break
		}
		h.place(i, h.ranks[up])
		i = up
	}
	for {
		first := i
		best := &r
		for k := 4*i + 1; k <= 4*i+4 && k < len(h.ranks); k++ {
			if h.ranks[k].before(best) {
				first, best = k, &h.ranks[k]
			}
		}
		if first == i {
			break
		}
		h.place(i, *best)
		i = first
	}
	h.place(i, r)
}

func (h *laneHeap) place(i int, r laneRank) {
	h.ranks[i] = r
	h.at[r.lane] = int32(i) //nolint:gosec // far fewer
}

// rankFired moves a lane to its place after it has fired.
func (t *thread) rankFired(ls *laneState) {
	if t.shared == nil {
		return
	}
	t.turns++
	t.rank(ls, t.turns)
}

// updateRank moves a lane to its place after its slots, or whether it accepts batches, have
// changed.
func (t *thread) updateRank(ls *laneState) {
	if t.shared == nil {
		return
	}
	t.rank(ls, t.freest.ranks[t.freest.at[ls.index]].turn)
}

func (t *thread) rank(ls *laneState, turn uint64) {
	r := laneRank{turn: turn, lane: int32(ls.index)} //nolint:gosec // far fewer
	if len(ls.refire) == 0 {
		r.free = int32(min(t.room(ls), 1<<30)) //nolint:gosec // bounded
	}
	if r.free > 0 {
		slots := ls.slots.iterate()
		r.since = max(ls.roomSince, slots.next())
	}
	t.freest.move(int(t.freest.at[ls.index]), r)
}
