package load

import (
	"time"

	"carronade/measure"
)

// takeAnswers empties the inbox and accounts for its contents.
func (t *thread) takeAnswers(now time.Duration) {
	out, ready := t.inbox.take()
	for _, r := range ready {
		if r.lane < 0 {
			lost := t.unrouted
			t.unrouted = nil
			for _, s := range lost {
				s.routedSince = t.run.watchdog.earliest(r.at)
				t.enqueue(s, now)
			}
			continue
		}
		if ls := t.laneOf(r.lane); ls != nil {
			at := t.run.watchdog.earliest(r.at)
			ls.roomSince = max(ls.roomSince, at)
			t.setFull(ls, false)
			t.unblock(ls, at)
		}
	}
	if len(out) == 0 {
		return
	}
	final := out[:0]
	for i := range out {
		if t.retry(&out[i], now) {
			continue
		}
		t.complete(&out[i], now)
		final = append(final, out[i])
	}
	t.notify(final)
}

// notify passes final outcomes to the plan's Observe and Trace.
func (t *thread) notify(final []Outcome) {
	if len(final) == 0 {
		return
	}
	if f := t.run.plan.Observe; f != nil {
		f(final)
	}
	if f := t.run.plan.Trace; f != nil {
		f(t.id, final)
	}
}

// retry queues a failed batch for another attempt if the plan allows one. The batch
// keeps its slot of the in-flight bound.
func (t *thread) retry(o *Outcome, now time.Duration) bool {
	if int(o.Attempt) >= t.run.plan.Retry || o.Failed != o.Events || o.Final || t.stopped(now) {
		return false
	}
	s := o.Batch
	if s.FirstSent = o.firstSent(); s.FirstSent < 0 {
		s.Free = max(s.Free, o.Done) // until then it waited for the system, such as for a connection
	}
	s.Attempt++
	t.rec.at(o.Done, int(s.Phase), t.run.partOf(s.Stream)).Retries += uint64(o.Retries) + 1
	ls := t.laneOf(int(o.Lane))
	ls.refire = append(ls.refire, s)
	t.refiring.add(ls.index)
	t.updateRank(ls)
	return true
}

// firstSent is when the first byte of the batch was written, at any attempt; -1 if none
// was.
func (o *Outcome) firstSent() time.Duration {
	if o.Attempt > 0 && o.FirstSent >= 0 {
		return o.FirstSent
	}
	return o.Sent
}

// bytesOf returns the share of the batch's bytes that belongs to n of its events.
func (o *Outcome) bytesOf(n int32) uint64 {
	if n == o.Events {
		return uint64(o.Bytes)
	}
	return uint64(float64(o.Bytes) * float64(n) / float64(max(o.Events, 1)))
}

// complete accounts for a batch with its final outcome.
func (t *thread) complete(o *Outcome, now time.Duration) {
	if o.Unknown > 0 {
		o.Class = o.Class.OfUnknown()
	}
	ls := t.laneOf(int(o.Lane))
	batches := o.count()
	arrived, noticed := t.arrivedAt(o)
	if ls.blocked && (t.shared == nil || t.wantsRoom()) {
		t.noteLate(arrived, now) // what waited for room could have been fired then
	}
	t.laterAnswered = t.laterAnswered || t.caughtUpAt > 0 && o.Sent > t.caughtUpAt
	if t.run.plan.Concurrency > 0 {
		t.callerSlots.push(arrived, batches)
	} else {
		ls.slots.push(arrived, batches)
		ls.slots.join(t.allReadySince(ls))
		t.updateRank(ls)
	}
	t.batchesInFlight -= batches // stopWaiting follows after the next batches were fired
	part := t.run.partOf(o.Stream)
	t.addInFlight(max(o.Done, t.changed), -int64(o.Events), part)
	t.unblock(ls, now) // not at arrived: the thread could not use the room before it noticed

	pg := t.rec.at(o.Done, int(o.Phase), part)
	o.Counted = int32(pg.interval) //nolint:gosec // of seconds, or tens of milliseconds
	t.addRead(pg, o)
	pg.Acked += uint64(o.Acked)
	pg.AckedBytes += o.bytesOf(o.Acked)
	pg.Counts.Failed += uint64(o.Failed)
	pg.Unknown += uint64(o.Unknown)
	pg.Retries += uint64(o.Retries)
	if o.Failed > 0 || (o.Unknown > 0 && !t.run.plan.Unanswered) {
		pg.fail(o.Class, o.Text, o.Failed+o.Unknown, batches)
	}
	if o.Status != 0 {
		pg.statuses.Add(int(o.Status), uint64(batches), uint64(o.Events))
	}
	came := o.Acked
	if t.run.plan.Unanswered {
		came += o.Unknown
	}
	at := t.run.phaseAt(o.Done)
	t.addArrived(pg, o.Done, at, part, uint64(came))
	t.arrived[at] += uint64(came)
	t.arrivedB[at] += o.bytesOf(came)
	own := t.account(part)
	if own != nil {
		own.arrived[at] += uint64(came)
		own.arrivedB[at] += o.bytesOf(came)
	}
	if o.Status != 0 || o.Sent >= 0 && (o.Acked > 0 || o.Failed > 0) { // a batch that was never sent has no answer
		t.answers[at] += uint64(batches)
		if own != nil {
			own.answers[at] += uint64(batches)
		}
	}
	t.recordTimes(pg, o, arrived)
	if t.run.plan.Unanswered {
		storeMax(&t.run.lastDone, int64(o.Done))
	} else {
		t.run.noteAnswer(o, noticed)
	}
	if l := &t.run.plan.Measurement; l.Failures > 0 || l.FailureRate > 0 {
		if int(o.Phase) >= t.run.firstMeasurement() {
			bad := uint64(o.Failed)
			if !t.run.plan.Unanswered { // without answers, every outcome is unknown
				bad += uint64(o.Unknown)
			}
			t.run.checkFailureLimits(uint64(o.Events), bad)
		}
	}
}

// addArrived adds answers that came at a time, in a phase, to its interval. pg is the page of their batch,
// which may belong to another phase. In the drain they are only in the tally of the drain.
func (t *thread) addArrived(pg *page, done time.Duration, phase, part int, n uint64) {
	if n == 0 || phase == len(t.run.phases) {
		return
	}
	if phase != pg.phase {
		pg = t.rec.at(done, phase, part)
	}
	pg.arrived += n
}

// allReadySince returns a time before which no event that is still to be fired on a lane
// was ready; below 0: not known.
func (t *thread) allReadySince(ls *laneState) time.Duration {
	if !t.scheduled() || ls.queue.n > 0 || len(t.gated)+len(t.unrouted) > 0 || len(t.asleep) == 0 {
		return -1
	}
	return t.asleep[0].ready - t.run.plan.Linger // a batch that was full earlier was ready earlier
}

// addRead counts the bytes that an answer brought.
func (t *thread) addRead(pg *page, o *Outcome) {
	if o.Read == 0 {
		return
	}
	o.Bytes += o.Read
	pg.Bytes += uint64(o.Read)
	at := t.run.phaseAt(o.Done)
	t.sendsB[at] += uint64(o.Read)
	if own := t.account(t.run.partOf(o.Stream)); own != nil {
		own.sendsB[at] += uint64(o.Read)
	}
	t.countBytes(o.Read, int(o.Phase), o.Done)
}

// arrivedAt returns the earliest moment at which the answer can have arrived and made
// room, so that the delay of a reader that did not run is not attributed to the system.
// since is when the reader is last known to have run, which may be before the batch was
// sent.
func (t *thread) arrivedAt(o *Outcome) (at, since time.Duration) {
	since = o.Done
	if o.Earliest > 0 {
		since = min(since, o.Earliest)
	}
	if o.Acked == 0 && o.Failed == 0 {
		return since, since // no answer arrived: the lane gave up
	}
	since = min(since, t.run.watchdog.earliest(o.Done))
	at = max(since, o.firstSent())
	if o.Done-at >= leastFreeze {
		t.run.watchdog.note(frozeReceiving, at, o.Done)
	}
	return at, since
}

// recordTimes records both clocks of a batch: the response time of each event from its
// due time, and the service time of the batch from its first byte. It also records
// lower bounds of both, without the delay that the generator itself may have added, and notes in the outcome
// what the lower bound of its end-to-end times needs.
func (t *thread) recordTimes(pg *page, o *Outcome, arrived time.Duration) {
	sent := o.firstSent()
	written := o.Sent >= 0
	batches := uint64(o.count())
	lower := &t.lower[o.Phase]
	if written { // after sent was noted, the process may have frozen, or a library waited, before the write
		unwritten := o.Unwritten
		if t.run.mode == FullSpeed {
			unwritten = 0 // a library always has more to write than it can: its queue is the load
		}
		arrived = max(sent, arrived-max(unwritten, t.run.watchdog.within(sent, arrived)))
	}
	disturbed := t.run.disturbed.list.Load()
	if disturbed.after(o.DueFirst) {
		disturbed = nil
	}
	if o.Late = 0; disturbed != nil && o.DueFirst >= 0 {
		o.Late = max(disturbed.at(o.DueFirst), disturbed.at(o.DueLast))
	}
	if written && !t.run.plan.Unanswered {
		switch {
		case o.Acked > 0:
			pg.Answered += batches
			recordN(&pg.Service, o.Done-sent, batches)
			late := o.Late
			// A batch that waited for room met a system that was as full as the bound
			// allows, with or without a burst from the generator.
			if o.Free > o.Ready {
				late = 0
			}
			lower.service.Record(arrived-sent, 0, late, batches)
		case o.Failed > 0:
			pg.Answered += batches
			recordN(&pg.FailedService, o.Done-sent, batches)
		}
	}
	if o.DueFirst < 0 {
		return // the events had no due time
	}
	if o.Free > o.Ready { // the answer that made room may have waited while the process was frozen
		o.Free = max(o.Ready, t.run.watchdog.earliest(o.Free))
	}
	if written {
		hist(&pg.Queueing).Record(max(0, o.Free-o.Ready))
	}
	acks, unknowns := uint64(o.Acked), uint64(o.Unknown)
	if t.run.plan.Unanswered {
		unknowns = 0 // no answer was expected
	}
	n := uint64(o.Events)
	if o.DueFirst == o.DueLast {
		delay := o.sendDelay(o.DueFirst)
		if written {
			hist(&pg.Batching).RecordN(max(0, o.Ready-o.DueFirst), n)
			recordN(&pg.SendDelay, delay, n)
		}
		if acks > 0 {
			recordN(&pg.Response, o.Done-o.DueFirst, acks)
			lower.response.Record(arrived-o.DueFirst, delay, o.Late, acks)
		}
		if unknowns > 0 {
			hist(&pg.Censored).RecordN(o.Done-o.DueFirst, unknowns)
		}
		return
	}
	// Each event counts from its own due time. Spreading events evenly between the
	// first and the last is correct only at a constant rate, and costs more if a batch
	// has fewer events than the histogram has cells in that span.
	batching, delays := hist(&pg.Batching), hist(&pg.SendDelay)
	for i := range n {
		due := t.run.due(o.Stream, o.First+i)
		delay := o.sendDelay(due)
		if written {
			batching.Record(max(0, o.Ready-due))
			delays.Record(delay)
		}
		if i < acks {
			hist(&pg.Response).Record(o.Done - due)
			lower.response.Record(arrived-due, delay, disturbed.at(due), 1)
		}
		if i >= n-unknowns {
			hist(&pg.Censored).Record(o.Done - due)
		}
	}
}

// lowerBounds are the lower bounds of one phase's times, without what the generator may
// have added.
type lowerBounds struct{ response, service, endToEnd LowerBound }

// A LowerBound is the histogram of the lower bounds of one kind of time: without what the generator may
// have added. Its zero value is empty.
type LowerBound struct {
	h       *measure.Histogram
	leftOut uint64 // number of values that were left out

	median   time.Duration // of h when it had medianOf values
	medianOf uint64
}

// Record counts n equal times without what the generator added: its own delay, or, for
// disturbed events, the greatest lateness at that time. A disturbed time that is then
// below the median says nothing about the system. It is left out, as if it were like the
// others, unless more values were left out than counted.
//
// A stall of the system raises the mean far above what most events take, so with the mean
// the shorter times of the stall itself would be left out.
func (l *LowerBound) Record(d, delay, late time.Duration, n uint64) {
	d = max(0, d-max(delay, late))
	if late > 0 && l.leftOut < l.h.Count() && d <= l.recentMedian() {
		l.leftOut += n
		return
	}
	recordN(&l.h, d, n)
}

// recentMedian returns the median of h, or the one from when h had at least 8/9 of its
// values: to find it takes a pass over the histogram.
func (l *LowerBound) recentMedian() time.Duration {
	if n := l.h.Count(); l.medianOf == 0 || n > l.medianOf+l.medianOf/8 {
		l.median, l.medianOf = l.h.Percentile(50), n
	}
	return l.median
}

// compact frees the memory of empty cells.
func (l *lowerBounds) compact() {
	for _, w := range []*LowerBound{&l.response, &l.service, &l.endToEnd} {
		w.h = w.h.Compact()
	}
}

// merge adds what another thread recorded.
func (l *lowerBounds) merge(o *lowerBounds) {
	for _, w := range [][2]*LowerBound{{&l.response, &o.response}, {&l.service, &o.service}, {&l.endToEnd, &o.endToEnd}} {
		if w[1].h != nil { // else it may be a time that does not exist
			hist(&w[0].h).Merge(w[1].h)
		}
		w[0].leftOut += w[1].leftOut
	}
}

// bound returns the lower bounds of what was measured.
func (l *lowerBounds) bound(s *measure.Set) *measure.Lower {
	return &measure.Lower{Response: l.response.Bound(s.Response), Service: l.service.Bound(s.Service), EndToEnd: l.endToEnd.Bound(s.EndToEnd)}
}

// Bound returns the lower bound of measured times; nil without any. The values that were left out were
// below the median. If they are many, as while the system stalls, leaving them out raises
// percentiles above the measured ones, so they also count as the median. No bound is
// above what was measured.
func (l *LowerBound) Bound(measured *measure.Histogram) *measure.Histogram {
	if l.leftOut == 0 || l.h.Count() == 0 {
		return l.h
	}
	all := l.h.Clone()
	all.RecordN(all.Percentile(50), l.leftOut)
	return measure.LeastOf(all, l.h, measured)
}

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
