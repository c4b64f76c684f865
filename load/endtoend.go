package load

import "time"

// Consumed records that the events of a batch were consumed at a time and arrived no
// earlier than another: the end-to-end time of a round trip, from due (or, if nothing
// was due, from sent) to consumed. It may be called until the plan's Completed returns,
// from any goroutine.
func (r *Run) Consumed(o *Outcome, at, earliest time.Duration) {
	j := &r.consumed
	j.mu.Lock()
	defer j.mu.Unlock()
	pg := j.rec.at(at, int(o.Phase), r.partOf(o.Stream))
	pg.Consumed += uint64(o.Events)
	h, lower := hist(&pg.EndToEnd), &j.lower[o.Phase].endToEnd
	earliest = min(earliest, r.watchdog.earliest(at))
	r.eachDue(o, 0, o.Events, func(due time.Duration, n uint64) {
		took, least, delay := o.EndToEnd(due, at, earliest, r.watchdog.within)
		h.RecordN(took, n)
		lower.Record(least, delay, o.Late, n)
	})
}

// Unread records that the events of a batch that were acked, or may have been taken, were not read until a
// time: their end-to-end times are at least their ages then. What was certainly refused has none. It may
// be called when Consumed may be.
func (r *Run) Unread(o *Outcome, at time.Duration) {
	acked, unknown := min(o.Acked, o.Events), min(o.Unknown, o.Events)
	if acked+unknown <= 0 {
		return
	}
	j := &r.consumed
	j.mu.Lock()
	defer j.mu.Unlock()
	pg := j.rec.at(at, int(o.Phase), r.partOf(o.Stream))
	pg.Unread += uint64(acked)
	if r.plan.Unanswered {
		pg.Unread += uint64(unknown)
	}
	h := hist(&pg.UnreadAges)
	age := func(due time.Duration, n uint64) { h.RecordN(o.sinceStart(due, at), n) }
	r.eachDue(o, 0, acked, age)
	r.eachDue(o, o.Events-unknown, o.Events, age)
}

// eachDue calls f with when events from..to-1 of a batch were due and how many were due then; below 0: they
// had no due time.
func (r *Run) eachDue(o *Outcome, from, to int32, f func(due time.Duration, n uint64)) {
	if from >= to {
		return
	}
	if o.DueFirst < 0 || o.DueFirst == o.DueLast {
		f(o.DueFirst, uint64(to-from))
		return
	}
	for k := from; k < to; k++ {
		f(r.due(o.Stream, o.First+uint64(k)), 1)
	}
}

// EndToEnd returns the end-to-end time of an event of a batch that was due at a time (below 0: never, so
// that it counts from when it was sent), read at another one, and arrived no earlier than a third; what
// remains of it without what the reader may have added; and the delay of the generator in sending it, which
// is a part of both. With the outcome's Late, a LowerBound takes the last two. frozen returns how much of a
// span the reader did not run: it then requests its next data later, too, so all data in transit may be late
// by as much.
func (o *Outcome) EndToEnd(due, at, earliest time.Duration, frozen func(from, to time.Duration) time.Duration) (took, least, delay time.Duration) {
	earliest = min(earliest, at-frozen(o.firstSent(), at))
	if due >= 0 {
		delay = o.sendDelay(due)
	}
	return o.sinceStart(due, at), o.sinceStart(due, min(at, max(earliest, o.firstSent()))), delay
}

// sinceStart returns the time from when an event was due, or sent if nothing was due, to a later one.
func (o *Outcome) sinceStart(due, at time.Duration) time.Duration {
	if due < 0 {
		due = max(0, o.firstSent())
	}
	return max(0, at-due)
}

// sendDelay is the generator's own delay in sending an event of the batch that was due at a time.
func (o *Outcome) sendDelay(due time.Duration) time.Duration {
	return max(0, o.firstSent()-max(due, o.Ready, o.Free))
}
