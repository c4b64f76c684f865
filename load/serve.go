package load

import (
	"time"
)

// serve fires what the bound allows.
func (t *thread) serve(now time.Duration) {
	t.more = false
	switch {
	case t.shared != nil:
		t.serveShared(now)
	case t.run.shares != nil:
		t.serveParts(now)
	default:
		t.serveEach(now)
	}
	if len(t.unrouted) > 0 && t.run.plan.Overload == Drop && t.scheduled() && now >= t.unroutedOverflow {
		lost := t.unrouted
		t.unrouted = nil
		for _, s := range lost {
			t.dropDue(s, now)
		}
	}
}

// Bounds of what serveShared fires at a time: mostPerLane batches of each lane, so that those
// of a lane are written together, and leastAtOnce if the lanes are few.
const (
	mostPerLane = 8
	leastAtOnce = 16 << 10
)

// A thread with many lanes that is late fires up to mostTogether batches in a row on a lane, which
// writes them together. Otherwise each would be a write of its own, and a write takes several times
// as long as the rest of a small batch: the thread would never catch up. A batch is late if it was
// ready, and a lane had room for it, for lateAlone: less than minSleep, so that a thread which wakes
// for several batches at a time takes less of a processor that it may share with the system.
const (
	mostTogether = 8
	lateAlone    = 60 * time.Microsecond
)

// serveShared fires each batch on the lane with the most free slots. A thread that is late by
// seconds does not fire all that is due at a time: what is fired and not written takes memory,
// and no answer is read while it fires.
func (t *thread) serveShared(now time.Duration) {
	var ls *laneState
	var since time.Duration // when the slot that ls had free first became free
	together := 0           // how many more late batches ls may fire
	for left := max(leastAtOnce, mostPerLane*len(t.lanes)); t.shared.n > 0; left-- {
		if s := *t.shared.first(); together == 0 || t.room(ls) == 0 || now-max(s.ready, since) < lateAlone {
			top := t.freest.top()
			if t.more = left <= 0 && top >= 0; t.more {
				return
			}
			if top < 0 {
				break
			}
			ls, since = t.lanes[top], t.freest.ranks[0].since
			if together = 1; len(t.lanes) >= manyConnections {
				together = mostTogether
			}
		}
		together--
		if !t.fire(t.shared.pop(), ls, now) {
			together = 0
		} else if t.until == Never {
			t.queueReady(now) // any lane may fire further due events of the same stream
		}
	}
	if t.run.plan.Overload == Drop {
		t.drop(t.shared, now)
	}
}

// serveEach fires what the bound allows of each lane's own streams. Each round begins
// with another lane, so that no lane takes all the slots. It looks only at lanes with a
// stream in their queue: of thousands of lanes, few have one at a time.
func (t *thread) serveEach(now time.Duration) {
	if len(t.lanes) == 0 {
		return
	}
	first := t.nextLane % len(t.lanes)
	t.nextLane = first + 1
	t.moved = false
	if t.serveFrom(first, len(t.lanes), now) && t.serveFrom(0, first, now) && t.moved {
		t.moved = false
		t.serveFrom(0, len(t.lanes), now) // its new lane may have been served before
		t.more = t.moved                  // not here, since routes may change for ever and answers must be read
	}
}

// serveFrom serves the lanes from one index to before another. It returns false if no
// slot is free: the next round begins there.
func (t *thread) serveFrom(from, to int, now time.Duration) bool {
	for i := t.queued.next(from); i >= 0 && i < to; i = t.queued.next(i + 1) {
		if t.run.plan.Concurrency > 0 && t.callerSlots.n == 0 {
			t.nextLane = i
			return false
		}
		ls := t.lanes[i]
		for t.canFire(ls) && t.fireNext(ls, now) {
		}
		if t.run.plan.Overload == Drop && t.scheduled() {
			t.drop(ls.queue, now)
		}
		if ls.queue.n == 0 {
			t.queued.remove(i)
		}
	}
	return true
}

// canFire reports whether a lane has a batch ready and room for it.
func (t *thread) canFire(ls *laneState) bool {
	return ls.queue.n > 0 && t.room(ls) > 0 && len(ls.refire) == 0
}

// fireNext fires the next batch of a lane's own queue. It returns false if the lane
// accepts no more for now.
func (t *thread) fireNext(ls *laneState, now time.Duration) bool {
	s := ls.queue.pop()
	if l := t.run.target.Route(s.id); l == nil || l.ID() != ls.ID() {
		free := t.freeSlots(ls)
		s.routedSince = max(s.routedSince, ls.roomSince, free.next()) // it waited for the system, not for this thread
		t.enqueue(s, now)                                             // its leader has moved
		t.moved = true
		return true
	}
	return t.fire(s, ls, now)
}

// A Progress describes how far a run is, for detecting that it is stuck.
type Progress struct {
	InFlight int64         // events
	Done     time.Duration // when the newest outcome came; 0 before the first
	Due      uint64        // events due by now, with a schedule
	Left     int64         // events that may be fired now, without one
	Written  uint64        // bytes
	Read     uint64
}

// Progress returns the progress of the run. It is safe for concurrent use once the run
// has started. It does not wait for sending threads, which may be stuck themselves.
func (r *Run) Progress() Progress {
	s := Progress{Done: time.Duration(r.lastDone.Load())}
	for _, t := range r.threads {
		s.InFlight += t.published.Load()
	}
	s.Written, s.Read = r.target.Wire()
	switch g := r.plan.Gate; {
	case g != nil && g.Left() == 0: // the run waits to be fed
	case r.plan.Schedule != nil:
		s.Due = min(r.plan.Schedule.Count(r.clipEnd(r.Now())), r.phases[len(r.phases)-1].to)
	case r.Now() < r.clipEnd(Never):
		s.Left = r.measurementLeft.Load()
	}
	return s
}

// Measured reports whether the measurement is over: its time, its bytes or its events, or it was stopped.
// Answers may still be waited for. It is safe for concurrent use once the run has started.
func (r *Run) Measured() bool {
	return r.Now() >= min(r.clipEnd(Never), time.Duration(r.lastFiredAt.Load()))
}

// Moved reports whether any event changed state between two moments.
func (s Progress) Moved(before Progress) bool {
	return s.InFlight != before.InFlight || s.Done != before.Done || s.Left != before.Left || s.Written != before.Written || s.Read != before.Read
}

// Waits reports whether a change is expected: answers are outstanding, or events have
// become due since the earlier moment.
func (s Progress) Waits(before Progress) bool {
	return s.InFlight > 0 || s.Due > before.Due || s.Left > 0
}
