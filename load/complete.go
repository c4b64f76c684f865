package load

import (
	"time"

	"carronade/measure"
)

// drain empties the inbox and accounts for what was in it.
func (t *thread) drain(now time.Duration) {
	out, ready := t.inbox.take()
	for _, r := range ready {
		if r.lane < 0 {
			lost := t.lost
			t.lost = nil
			for _, s := range lost {
				s.again = t.run.watchdog.earliest(r.at)
				t.enqueue(s, now)
			}
			continue
		}
		if ls := t.byID[r.lane]; ls != nil {
			at := t.run.watchdog.earliest(r.at)
			ls.full, ls.again = false, max(ls.again, at)
			t.unblock(ls, at)
		}
	}
	if len(out) == 0 {
		return
	}
	final := out[:0]
	for i := range out {
		if t.again(&out[i], now) {
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

// again queues a failed batch for another attempt if the plan allows one. The batch
// keeps its place in the in-flight bound.
func (t *thread) again(o *Outcome, now time.Duration) bool {
	if int(o.Attempt) >= t.run.plan.Retry || o.Failed != o.Events || t.stopped(now) {
		return false
	}
	s := o.Batch
	s.FirstSent = o.firstSent()
	s.Attempt++
	t.rec.at(o.Done, int(s.Phase)).Retries += uint64(o.Retries) + 1
	ls := t.byID[int(o.Lane)]
	ls.refire = append(ls.refire, s)
	t.refires++
	return true
}

// firstSent is when the batch's first byte was written, at whichever attempt; -1
// when none was.
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
	ls := t.byID[int(o.Lane)]
	batches := o.count()
	arrived, noticed := t.arrivedAt(o)
	if ls.blocked {
		if t.wantsRoom() {
			t.late(arrived, now) // what waited for room could have gone then
		}
	}
	t.passed = t.passed || t.caughtUp > 0 && o.Sent > t.caughtUp
	if t.run.plan.Concurrency > 0 {
		t.callerSlots.push(arrived, batches)
	} else {
		ls.slots.push(arrived, batches)
	}
	t.batchesInFlight -= batches // stopWaiting follows after the next batches were fired
	t.addInFlight(max(o.Done, t.changed), -int64(o.Events))
	t.unblock(ls, now) // not at arrived: the thread could not use the room before it noticed

	pg := t.rec.at(o.Done, int(o.Phase))
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
	t.arrived[at] += uint64(came)
	t.arrivedB[at] += o.bytesOf(came)
	if o.Status != 0 || o.Sent >= 0 && (o.Acked > 0 || o.Failed > 0) { // what was never sent has no answer
		t.answers[at] += uint64(batches)
	}
	t.time(pg, o, arrived)
	if t.run.plan.Unanswered {
		raise(&t.run.lastDone, int64(o.Done))
	} else {
		t.run.answer(o, noticed)
	}
	if l := &t.run.plan.Measurement; l.Failures > 0 || l.FailureRate > 0 {
		if int(o.Phase) >= t.run.firstMeasurement() {
			bad := uint64(o.Failed)
			if !t.run.plan.Unanswered { // without answers, every outcome is unknown
				bad += uint64(o.Unknown)
			}
			t.run.check(uint64(o.Events), bad)
		}
	}
}

// arrivedAt returns the earliest moment at which the answer can have arrived and made
// room, so that the delay of a reader that did not run is not counted as the system's.
// since is when reading was last known to work, which may be before the batch was sent.
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

// time records both clocks of a batch: response time per event from its due
// time, and service time per batch from its first byte; and the lower bounds of
// both, without what the generator itself may have added.
func (t *thread) time(pg *page, o *Outcome, arrived time.Duration) {
	sent := o.firstSent()
	written := o.Sent >= 0
	batches := uint64(o.count())
	lower := &t.lower[o.Phase]
	disturbed := t.run.disturbed.list.Load()
	if disturbed.after(o.DueFirst) {
		disturbed = nil
	}
	if written && !t.run.plan.Unanswered {
		switch {
		case o.Acked > 0:
			pg.Answered += batches
			recordN(&pg.Service, o.Done-sent, batches)
			late := time.Duration(0)
			// A batch that waited for room met a system that was as full as the bound
			// allows, with or without a burst from the generator.
			if disturbed != nil && o.DueFirst >= 0 && o.Free <= o.Ready {
				late = max(disturbed.at(o.DueFirst), disturbed.at(o.DueLast))
			}
			lower.service.record(arrived-sent, 0, late, batches)
		case o.Failed > 0:
			pg.Answered += batches
			recordN(&pg.FailedService, o.Done-sent, batches)
		}
	}
	if o.DueFirst < 0 {
		return // nothing was due at a certain time
	}
	free := o.Free
	if free > o.Ready {
		free = max(o.Ready, t.run.watchdog.earliest(free))
	}
	if written {
		hist(&pg.Queueing).Record(max(0, free-o.Ready))
	}
	acks, unknowns := uint64(o.Acked), uint64(o.Unknown)
	if t.run.plan.Unanswered {
		unknowns = 0 // no answer was expected
	}
	n := uint64(o.Events)
	if o.DueFirst == o.DueLast {
		delay := max(0, sent-max(o.Ready, free))
		if written {
			hist(&pg.Batching).RecordN(max(0, o.Ready-o.DueFirst), n)
			recordN(&pg.SendDelay, delay, n)
		}
		if acks > 0 {
			recordN(&pg.Response, o.Done-o.DueFirst, acks)
			lower.response.record(arrived-o.DueFirst, delay, disturbed.at(o.DueFirst), acks)
		}
		if unknowns > 0 {
			hist(&pg.Censored).RecordN(o.Done-o.DueFirst, unknowns)
		}
		return
	}
	// Each event counts from its own due time. Spreading events evenly between the
	// first and the last is right only at a constant rate, and it costs more when a
	// batch has fewer events than the histogram has cells in that span.
	batching, delays := hist(&pg.Batching), hist(&pg.SendDelay)
	for i := range n {
		due := t.run.plan.Schedule.Due(t.run.partitioner.Event(o.Stream, o.First+i))
		delay := max(0, sent-max(due, o.Ready, free))
		if written {
			batching.Record(max(0, o.Ready-due))
			delays.Record(delay)
		}
		if i < acks {
			hist(&pg.Response).Record(o.Done - due)
			lower.response.record(arrived-due, delay, disturbed.at(due), 1)
		}
		if i >= n-unknowns {
			hist(&pg.Censored).Record(o.Done - due)
		}
	}
}

// lowers are the lower bounds of one phase's times: without what the generator may
// have added.
type lowers struct{ response, service, endToEnd lower }

// A lower is the histogram of the lower bounds of one kind of time.
type lower struct {
	h    *measure.Histogram
	left uint64 // values that were left out
}

// record counts n equal times without what the generator added: its own delay, or, for
// disturbed ones, the most that it was late at that time. A disturbed time that is then
// below the mean says nothing about the system. It is left out, as if it were like the
// others, unless more were left out than counted.
func (l *lower) record(d, delay, late time.Duration, n uint64) {
	d = max(0, d-max(delay, late))
	if late > 0 && l.left < l.h.Count() && d <= l.h.Mean() {
		l.left += n
		return
	}
	recordN(&l.h, d, n)
}

// compact frees the memory of empty cells.
func (l *lowers) compact() {
	for _, w := range []*lower{&l.response, &l.service, &l.endToEnd} {
		w.h = w.h.Compact()
	}
}

// restore counts the values that were left out, at the mean. It is needed when events
// without an answer are part of the percentiles, which then depend on the number of
// all others.
func (l *lowers) restore() {
	for _, w := range []*lower{&l.response, &l.service, &l.endToEnd} {
		if w.left > 0 && w.h.Count() > 0 {
			w.h.RecordN(w.h.Mean(), w.left)
			w.left = 0
		}
	}
}

// measured returns what was recorded.
func (l *lowers) measured() *measure.Lower {
	return &measure.Lower{Response: l.response.h, Service: l.service.h, EndToEnd: l.endToEnd.h}
}
