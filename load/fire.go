package load

import (
	"math"
	"time"
)

// fire fires the next batch of a stream (or, where batches have a fixed number of
// events, as many as are due and the bound allows), and puts the stream to sleep until
// the following one. It returns false if the lane accepts no more for now; the stream
// is back in the queue then.
func (t *thread) fire(s *stream, ls *laneState, now time.Duration) bool {
	var n, phase, events int
	var exhausted bool
	if t.scheduled() {
		n, exhausted = t.compose(s, ls, now)
		phase = s.phase
	} else {
		n, phase, events, exhausted = t.composeGroup(s, ls, now)
		if n == 0 && !exhausted {
			n, phase, events, exhausted = t.composeUnscheduled(s, ls, now)
		}
	}
	if n == 0 && exhausted && t.run.shares != nil {
		t.enqueueOn(ls, s)
		return false
	}
	if n == 0 && exhausted {
		t.gated = append(t.gated, s)
		return true // the lane has room: waiting for the gate is not overload
	}
	if n == 0 {
		t.markFull(ls, now) // no room for this stream: the lane will call Ready
		t.enqueueOn(ls, s)
		return false
	}
	taken := ls.Fire(t.batches[:n])
	fired := 0
	gate := t.run.gateOf(s.part)
	for i := range taken {
		fired += int(t.batches[i].Events)
		t.recordSent(&t.batches[i], s, ls, phase, now)
	}
	if taken > 0 {
		t.markUnflushed(ls)
	}
	if taken < n {
		rest := 0
		for i := taken; i < n; i++ {
			rest += int(t.batches[i].Events)
			ls.seq -= uint64(t.batches[i].count())
		}
		if !t.scheduled() {
			t.run.unclaim(min(rest, events), phase)
		}
		if gate != nil {
			gate.complete(fired, rest)
		}
		if sh := t.run.shares; sh != nil {
			sh.giveBack(s.part, rest)
		}
		t.markFull(ls, now)
		t.enqueueOn(ls, s)
		return false
	}
	if gate != nil {
		gate.complete(fired, 0)
	}
	if t.room(ls) == 0 {
		t.block(ls, now)
	}
	if t.scheduled() {
		t.sleep(s)
	} else {
		t.enqueueOn(ls, s)
	}
	return true
}

// compose makes batches of the events of a scheduled stream that are due. exhausted:
// the gate allowed none of them.
func (t *thread) compose(s *stream, ls *laneState, now time.Duration) (n int, exhausted bool) {
	p := &t.run.plan
	due := min(t.run.dueBefore(s.id, min(now+1, t.until)), s.end)
	most := 1
	if p.BatchEvents > 0 && t.shared == nil {
		most = min(t.room(ls), len(t.batches))
	}
	free := t.freeSlots(ls)
	for k := s.next; n < most && k < due; n++ {
		room := ls.Room(s.id, k)
		if room < 0 {
			return n, n == 0
		}
		if room == 0 {
			break
		}
		var events int
		if p.BatchEvents > 0 {
			events = int(min(uint64(p.BatchEvents), s.end-k, uint64(room)))
		} else {
			events = int(min(due-k, uint64(room)))
		}
		var allowed time.Duration
		if g := t.run.gateOf(s.part); g != nil {
			if events, allowed = g.take(events); events == 0 {
				return n, true
			}
		}
		batch := &t.batches[n]
		*batch = Batch{Seq: ls.seq, First: k, Stream: s.id, Events: int32(events), Phase: int32(s.phase)}
		ls.seq++
		batch.DueFirst = t.due(s, k)
		batch.DueLast, batch.Ready = batch.DueFirst, batch.DueFirst
		if p.BatchEvents == 0 && events > 1 {
			batch.DueLast = t.due(s, k+uint64(events)-1)
		}
		if p.BatchEvents == 0 && p.Linger > 0 {
			batch.Ready += p.Linger
			if events == room {
				batch.Ready = min(batch.Ready, batch.DueLast)
			}
			batch.Ready = min(batch.Ready, now) // the lane had more room when the stream went to sleep
		}
		batch.Free = max(batch.Ready, ls.roomSince, s.routedSince, free.next(), allowed)
		k += uint64(events)
	}
	return n, false
}

// composeUnscheduled makes batches of a stream without a schedule. exhausted: the
// gate or the run's limits allowed none.
func (t *thread) composeUnscheduled(s *stream, ls *laneState, now time.Duration) (n, phase, claimed int, exhausted bool) {
	p := &t.run.plan
	most := 1
	if p.BatchEvents > 0 {
		// Half of the bound at a time, which leaves room for other streams.
		most = min(t.room(ls), len(t.batches), max(1, p.MaxInFlight/2))
		if len(t.streams) > 1 || p.Concurrency > 0 || t.run.shares != nil {
			most = 1
		}
	}
	k := s.next
	free := t.freeSlots(ls)
	gate, sh := t.run.gateOf(s.part), t.run.shares
	for n < most {
		events := ls.Room(s.id, k)
		if events < 0 {
			exhausted = n == 0
			break
		}
		if events == 0 {
			break
		}
		if p.BatchEvents > 0 {
			events = min(events, p.BatchEvents)
		}
		var allowed time.Duration
		if gate != nil {
			if events, allowed = gate.take(events); events == 0 {
				exhausted = true
				break
			}
		}
		if sh != nil && !sh.take(s.part, events) {
			if gate != nil {
				gate.complete(0, events)
			}
			exhausted = true
			break
		}
		got, ph := t.run.claim(events, now)
		fits := n == 0 || ph == phase
		if !fits { // the warm-up ended between two batches
			t.run.unclaim(got, ph)
			got = 0
		}
		if gate != nil && got < events {
			gate.complete(0, events-got)
		}
		if sh != nil {
			sh.giveBack(s.part, events-got)
		}
		if got == 0 {
			exhausted = fits
			break
		}
		phase = ph
		batch := &t.batches[n]
		*batch = Batch{Seq: ls.seq, First: k, Stream: s.id, Events: int32(got), Phase: int32(ph), DueFirst: -1, DueLast: -1}
		ls.seq++
		batch.Ready = max(free.next(), ls.firstSeen)
		batch.Free = max(batch.Ready, ls.roomSince, s.routedSince, allowed)
		k += uint64(got)
		claimed += got
		n++
	}
	return n, phase, claimed, exhausted
}

// freeSlots iterates over when the free slots of the bound became free.
func (t *thread) freeSlots(ls *laneState) slotIterator {
	if t.run.plan.Concurrency > 0 {
		return t.callerSlots.iterate()
	}
	return ls.slots.iterate()
}

// recordSent accounts for a batch that the lane accepted.
func (t *thread) recordSent(batch *Batch, s *stream, ls *laneState, phase int, now time.Duration) {
	batches := batch.count()
	if batch.Withheld {
		s.next += uint64(batch.Events)
		pg := t.rec.at(now, phase, s.part)
		pg.Unsent += uint64(batch.Events)
		if !t.scheduled() {
			pg.Offered += uint64(batch.Events)
		}
		return
	}
	if t.run.plan.Concurrency > 0 {
		t.callerSlots.pop(batches)
	} else {
		ls.slots.pop(batches)
		t.rankFired(ls)
	}
	s.next += uint64(batch.Events)
	t.addInFlightOf(t.run, now, int64(batch.Events), s.part)
	t.startWaiting(now)
	t.batchesInFlight += batches
	pg := t.rec.at(now, phase, s.part)
	pg.Sent += uint64(batch.Events)
	pg.Bytes += uint64(batch.Bytes)
	pg.Batches += uint64(batches)
	p := t.of(s.part).at(t.run, now)
	p.sends += uint64(batch.Events)
	p.sendsB += uint64(batch.Bytes)
	if !t.scheduled() {
		pg.Offered += uint64(batch.Events)
	}
	if t.run.plan.Measurement.Bytes > 0 {
		t.countBytes(batch.Bytes, phase, now)
	}
}

// countBytes ends the firing when the limit on bytes is reached.
func (t *thread) countBytes(n int64, phase int, now time.Duration) {
	l := t.run.plan.Measurement.Bytes
	if l == 0 || phase < t.run.firstMeasurement() || uint64(t.run.bytes.Add(n)) < l {
		return
	}
	t.run.byteLimitAt.CompareAndSwap(int64(Never), int64(now))
	t.run.wakeAll()
}

// markFull records that a lane accepts no more. A lane that is full with nothing in
// flight has no connection, so answers are missing from now on.
func (t *thread) markFull(ls *laneState, now time.Duration) {
	t.setFull(ls, true)
	t.block(ls, now)
	t.startWaiting(now)
}

// setFull notes whether a lane accepts batches.
func (t *thread) setFull(ls *laneState, full bool) {
	if full != ls.full {
		ls.full = full
		if full {
			t.full++
		} else {
			t.full--
		}
	}
	t.updateRank(ls)
}

// startWaiting records that the thread waits for answers from now on, unless it already
// does.
func (t *thread) startWaiting(now time.Duration) {
	if t.batchesInFlight == 0 && t.waitingSince.Load() == int64(Never) {
		t.waitingSince.Store(int64(now))
	}
}

// stopWaiting records that no answer is expected: nothing is in flight, and no lane is
// full.
func (t *thread) stopWaiting() {
	if t.batchesInFlight > 0 || t.full > 0 || t.waitingSince.Load() == int64(Never) {
		return
	}
	t.waitingSince.Store(int64(Never))
}

// block and unblock measure the time during which a lane's bound was full.
func (t *thread) block(ls *laneState, now time.Duration) {
	if !ls.blocked {
		ls.blocked, ls.blockedAt = true, now
		t.blocked++
	}
}

func (t *thread) unblock(ls *laneState, at time.Duration) {
	if !ls.blocked || ls.full {
		return
	}
	ls.blocked = false
	t.blocked--
	r := t.run
	ls.blockedFor += max(0, r.clipEnd(min(at, time.Duration(r.lastFiredAt.Load())))-max(ls.blockedAt, time.Duration(r.measurementAt.Load())))
}

// markUnflushed records that a lane has something to write.
func (t *thread) markUnflushed(ls *laneState) {
	if !ls.unflushed {
		ls.unflushed = true
		t.unflushed = append(t.unflushed, ls)
	}
}

// refire fires failed batches again, before anything new on their lane.
func (t *thread) refire() {
	for i := t.refiring.next(0); i >= 0; i = t.refiring.next(i + 1) {
		ls := t.lanes[i]
		if ls.full {
			continue
		}
		for i := range ls.refire {
			if b := &ls.refire[i]; b.FirstSent < 0 {
				b.Free = max(b.Free, ls.roomSince)
			}
		}
		taken := ls.Fire(ls.refire)
		if taken > 0 {
			t.markUnflushed(ls)
		}
		ls.refire = append(ls.refire[:0], ls.refire[taken:]...)
		if len(ls.refire) == 0 {
			t.refiring.remove(i)
		}
		t.setFull(ls, len(ls.refire) > 0)
	}
}

// drop drops batches of queued streams for which the bound has no room. It returns at
// once while the buffer has room for all of them, because it is called many thousand
// times a second for a full lane.
func (t *thread) drop(q *backlog, now time.Duration) {
	if now < q.overflowAt {
		return
	}
	q.overflowAt = Never
	for range q.n {
		t.dropDue(q.pop(), now)
	}
}

// streamBuffer returns how many events of each stream fit into the buffer, which the
// streams share evenly; 0 without a buffer.
func (p *Plan) streamBuffer(streams int) uint64 {
	if p.BufferBytes <= 0 || p.Overload != Drop || p.Schedule == nil {
		return 0
	}
	each := p.EventBytes * float64(streams)
	if each <= 0 || float64(p.BufferBytes)/each >= 1<<62 {
		return 1 << 62
	}
	return uint64(max(1, math.Ceil(float64(p.BufferBytes)/each)))
}

// overflowTime returns when the due events of a stream fill its share of the buffer, so
// that its next batch is dropped; Never if they do not.
func (t *thread) overflowTime(s *stream) time.Duration {
	if t.streamBuffer == 0 {
		return 0
	}
	if s.end-s.next < t.streamBuffer {
		return Never
	}
	at := t.due(s, s.next+t.streamBuffer-1)
	if at >= t.until {
		return Never
	}
	return at
}

// dropDue drops the due events of a stream, unless the buffer still has room for them.
func (t *thread) dropDue(s *stream, now time.Duration) {
	p := &t.run.plan
	for s.ready <= now {
		due := min(t.run.dueBefore(s.id, min(now+1, t.until)), s.end)
		if due <= s.next {
			break
		}
		events := due - s.next
		if p.BatchEvents > 0 {
			events = min(uint64(p.BatchEvents), s.end-s.next)
		}
		if due-s.next < t.streamBuffer {
			t.enqueue(s, now)
			return
		}
		t.rec.at(now, s.phase, s.part).Dropped += events
		if f := p.Dropped; f != nil && !p.Unanswered {
			first := t.due(s, s.next)
			last := first // a batch of a fixed size is due at once
			if p.BatchEvents == 0 {
				last = t.due(s, s.next+events-1)
			}
			f(t.id, s.id, first, last, events)
		}
		s.next += events
		if !t.advance(s) {
			return
		}
	}
	t.asleep.push(s)
}

// allowed returns how many of the streams that wait for the gate may try again.
func (t *thread) allowed() int {
	if g := t.run.plan.Gate; g != nil && len(t.gated) > 0 {
		return int(min(uint64(len(t.gated)), g.Left()))
	}
	return len(t.gated)
}
