package load

import "time"

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
	if s.FirstSent = o.SentFirst(); s.FirstSent < 0 {
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
	t.addInFlightOf(t.run, o.Done, -int64(o.Events), part)
	t.unblock(ls, now) // not at arrived: the thread could not use the room before it noticed

	pg := t.rec.at(o.Done, int(o.Phase), part)
	o.Counted = int32(pg.interval) //nolint:gosec // of seconds, or tens of milliseconds
	if o.Read > 0 {
		t.addRead(pg, o)
	}
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
	own := t.of(part)
	counts := own.at(t.run, o.Done)
	counts.arrived += uint64(came)
	counts.arrivedB += o.bytesOf(came)
	if came > 0 && own.phase < len(t.run.phases) { // what comes in the drain is only in the tally of the drain
		in := pg
		if own.phase != pg.phase {
			in = t.rec.at(o.Done, own.phase, part)
		}
		in.arrived += uint64(came)
	}
	if o.Status != 0 || o.Sent >= 0 && (o.Acked > 0 || o.Failed > 0) { // a batch that was never sent has no answer
		counts.answers += uint64(batches)
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
	o.Bytes += o.Read
	pg.Bytes += uint64(o.Read)
	t.of(pg.part).at(t.run, o.Done).sendsB += uint64(o.Read)
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
	at = max(since, o.SentFirst())
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
	sent, written, batches := o.SentFirst(), o.Sent >= 0, uint64(o.count())
	lower := &t.lower[o.Phase]
	if written { // after sent was noted, the process may have frozen, or a library waited, before the write
		unwritten := o.Unwritten
		if t.run.mode == FullSpeed {
			unwritten = 0 // a library always has more to write than it can: its queue is the load
		}
		arrived -= max(unwritten, t.run.watchdog.within(sent, arrived))
	}
	disturbed := t.run.disturbed.list.Load()
	if disturbed.after(o.DueFirst) {
		disturbed = nil
	}
	if o.Late = 0; disturbed != nil && o.DueFirst >= 0 {
		o.Late = max(disturbed.at(o.DueFirst), disturbed.at(o.DueLast))
	}
	p := &t.passage
	p.of(o, o.Done, arrived)
	if written && !t.run.plan.Unanswered {
		switch e := p.Service(); {
		case o.Acked > 0:
			pg.Answered += batches
			recordN(&pg.Service, e.took, batches)
			lower.service.Record(e, batches)
		case o.Failed > 0:
			pg.Answered += batches
			recordN(&pg.FailedService, e.took, batches)
		}
	}
	if o.DueFirst < 0 {
		return // the events had no due time
	}
	if o.Free > o.Ready { // the answer that made room may have waited while the process was frozen
		o.Free = max(o.Ready, t.run.watchdog.earliest(o.Free))
		p.Free = o.Free
	}
	if written {
		recordN(&pg.Queueing, max(0, o.Free-o.Ready), 1)
	}
	acks, unknowns := uint64(o.Acked), uint64(o.Unknown)
	if t.run.plan.Unanswered {
		unknowns = 0 // no answer was expected
	}
	n := uint64(o.Events)
	if o.DueFirst == o.DueLast {
		e := p.Since(o.DueFirst)
		if written {
			recordN(&pg.Batching, max(0, o.Ready-o.DueFirst), n)
			recordN(&pg.SendDelay, e.delay, n)
		}
		if acks > 0 {
			recordN(&pg.Response, e.took, acks)
			lower.response.Record(e, acks)
		}
		if unknowns > 0 {
			recordN(&pg.Censored, e.took, unknowns)
		}
		return
	}
	// Each event counts from its own due time. Spreading events evenly between the
	// first and the last is correct only at a constant rate, and costs more if a batch
	// has fewer events than the histogram has cells in that span.
	batching, delays := hist(&pg.Batching), hist(&pg.SendDelay)
	for i := range n {
		due := t.run.due(o.Stream, o.First+i)
		p.Late = disturbed.at(due)
		e := p.Since(due)
		if written {
			batching.Record(max(0, o.Ready-due))
			delays.Record(e.delay)
		}
		if i < acks {
			hist(&pg.Response).Record(e.took)
			lower.response.Record(e, 1)
		}
		if i >= n-unknowns {
			hist(&pg.Censored).Record(e.took)
		}
	}
}
