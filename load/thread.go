package load

import (
	"sync/atomic"
	"time"

	"carronade/internal/impair"
)

// A thread drives some of the streams and all lanes that serve them: it waits until
// batches are ready, fires them when the in-flight bound has room, and records their
// outcomes. Everything in it belongs to one goroutine, apart from the inbox and the few
// atomics that the collector reads.
type thread struct {
	run              *Run
	id               int
	inbox            inbox
	wait             waiter
	rec              recorder
	streams          []*stream
	asleep           heap          // scheduled streams whose batch is not ready
	shared           *backlog      // streams that wait for any lane; nil: each lane has a separate backlog
	unrouted         []*stream     // ready, but without a lane at the moment
	unroutedOverflow time.Duration // when the first of them has more events waiting than fit into the buffer
	streamBuffer     uint64        // events of a stream that fit into the buffer; 0: no buffer
	gated            []*stream     // waiting for the run's gate
	starved          bool          // the shares have counted the thread as waiting for another part
	accounts         []account     // of each part; nil if the run has none
	lanes            []*laneState  // seen so far
	byID             []*laneState  // by the ID of the lane; nil: not seen
	freest           laneHeap      // lanes that share a backlog
	turns            uint64        // batches fired
	queued           indexSet      // of lanes with streams in their own queue; and of some whose queue became empty
	blocked          int           // lanes that are blocked
	unflushed        []*laneState  // with batches that are not flushed
	refiring         indexSet      // of lanes with batches that wait to be fired again
	more             bool          // serve has left batches that can be fired now
	full             int           // lanes that accept nothing for now
	nextLane         int           // index of the lane that the next round begins with
	moved            bool          // in this round a stream went to the queue of another lane
	left             int           // streams of a schedule with events left
	until            time.Duration // events due at this time or later are not fired; Never before a stop
	ended            time.Duration // when nothing was left to fire; 0 before
	callerSlots      slots         // closed loop: this thread's share of the concurrency
	grouped          bool          // batches may be fired in batch groups
	minSleep         time.Duration // minimum time between two checks of a schedule
	shortSleep       atomic.Bool   // the thread wakes within minSleep, and answers may wait until then
	watched          bool          // the watchdog counts the thread as active
	idleUntil        time.Duration // end of the last long wait with nothing to do

	batches [64]Batch

	inFlight        atomic.Int64 // events
	batchesInFlight int
	waitingSince    atomic.Int64  // since when answers are expected (batches are in flight, or a lane is full); Never while none is
	changed         time.Duration // when inFlight last changed
	area            []float64     // events in flight x seconds, per phase of time
	most            []int64       // most events in flight, per phase of time
	arrived         []uint64      // events answered, per phase of time
	arrivedB        []uint64      // their bytes
	sends, sendsB   []uint64      // per phase of time: events sent, and their bytes
	answers         []uint64      // batches answered, with any result, per phase of time
	unsent          []uint64      // events due and not sent, per phase
	offered         []uint64      // events offered, per phase (only when stopped early)
	idleFor         time.Duration // time waited during the measurement
	lower           []lowerBounds // per phase of the events
	compacted       int           // number of leading entries of lower that are compacted

	disturbed     bool          // the thread was late, and inFlight is not back to levelBefore
	levelBefore   int64         // events in flight before
	caughtUpAt    time.Duration // when all late events had been sent; 0: not yet
	laterAnswered bool          // a batch sent after that has been answered
	doneAt        time.Duration // when all its work was done
}

// A stream is a sequence of events that keep their order.
type stream struct {
	id          int32
	part        int
	phase       int
	next        uint64 // index of the first event not fired
	end         uint64 // index of the first event after the phase
	ready       time.Duration
	routedSince time.Duration // when it last got a lane, after a time without one or with one that had no room
}

// A laneState is the engine's side of a lane.
type laneState struct {
	Lane
	index      int // in the thread's lanes
	part       int
	batchGroup func(stream int32, first uint64, events int) int // nil: the lane does not accept batch groups
	slots      slots
	seq        uint64
	full       bool          // the lane accepted less than it was given
	roomSince  time.Duration // when it last reported that it may be tried again
	queue      *backlog
	refire     []Batch
	unflushed  bool
	blocked    bool // bound full, or lane full
	blockedAt  time.Duration
	blockedFor time.Duration // during the measurement
	firstSeen  time.Duration
}

func newThread(r *Run, id, of int) *thread {
	t := &thread{run: r, id: id, until: Never}
	t.waitingSince.Store(int64(Never))
	t.grouped = t.mayGroup()
	if w := newPollWaiter(r, id, of); w != nil {
		t.wait = w
	} else if r.plan.Schedule != nil && !r.plan.Portable {
		t.wait = newPreciseWaiter(r.start)
	} else {
		t.wait = newTimerWaiter(r.start)
	}
	if _, portable := t.wait.(*timerWaiter); r.plan.Schedule != nil && !portable {
		t.minSleep = minSleep
	}
	if r.can.Shares && t.scheduled() {
		t.shared = &backlog{}
	}
	t.watched = true
	t.streamBuffer = r.plan.streamBuffer(r.partitioner.Streams())
	t.rec = recorder{length: r.plan.Interval, free: make(chan *page, 8)}
	n := len(r.phases) + 1
	t.area, t.arrived, t.arrivedB, t.answers = make([]float64, n), make([]uint64, n), make([]uint64, n), make([]uint64, n)
	t.sends, t.sendsB = make([]uint64, n), make([]uint64, n)
	t.lower = make([]lowerBounds, len(r.phases))
	t.unsent, t.offered, t.most = make([]uint64, n), make([]uint64, n), make([]int64, n)
	t.accounts = newAccounts(r, n)
	if c := r.plan.Concurrency; c > 0 {
		mine := c / of
		if id < c%of {
			mine++
		}
		t.callerSlots.fill(mine, 0)
	}
	return t
}

func (t *thread) add(id int32) {
	t.streams = append(t.streams, &stream{id: id, part: t.run.partOf(id)})
}

func (t *thread) scheduled() bool { return t.run.plan.Schedule != nil }

// loop fires until nothing is left to fire and nothing is in flight, or the drain is
// over.
func (t *thread) loop() {
	t.wait.prepare()
	defer t.wait.close()
	t.begin()
	t.run.begun.Done()
	now := t.run.Now()
	for now < 0 {
		t.wait.wait(0, true, true)
		now = t.run.Now()
	}
	for {
		impair.Point(impair.Send, now)
		t.takeAnswers(now)
		firing := t.firing(now)
		if firing {
			t.queueReady(now)
			t.serve(now)
		} else if t.until == Never && t.scheduled() {
			t.fireRemaining(now)
		}
		t.refire()
		t.stopWaiting()
		t.flush()
		t.handOver(now)
		wake, end := t.nextWake(now, firing)
		if end {
			t.doneAt = now
			break
		}
		before := t.run.Now()
		t.noteLate(now, before)
		t.endDisturbance(before)
		if patient := !t.wantsRoom(); !t.nextIsOurs(firing) && t.prepareSleep(wake-before, patient) {
			idle := t.idle()
			wake = t.watch(before, wake, idle)
			t.wait.wait(wake, patient, idle)
		}
		now = t.run.Now()
		t.addIdle(before, now)
		t.noteUnwatched(before, max(wake, before), now)
		t.noteLate(max(wake, before), now)
	}
	t.finish()
}

// idle reports whether the thread expects neither an answer nor a lane.
func (t *thread) idle() bool {
	return t.batchesInFlight == 0 && len(t.unrouted) == 0 && t.waitingSince.Load() == int64(Never)
}

// longIdle is how long a thread must have nothing to do and expect no answer before the
// watchdog may pause.
const longIdle = 4 * beatEvery

// minSleep is the minimum sleep between two checks of the schedule. Waking and writing
// for one event costs about ten microseconds, which at 100,000 events a second is all
// of a processor's time. Events closer together are therefore fired together, which
// shows in the send delay of the first one; others are fired when they are due.
const minSleep = 100 * time.Microsecond

// prepareSleep prepares a sleep of the given length: answers wake the thread, unless it
// wakes so soon that they may wait. It returns false if answers have already arrived,
// so that the thread must not sleep.
func (t *thread) prepareSleep(length time.Duration, patient bool) bool {
	if t.minSleep == 0 {
		return true
	}
	soon := length <= t.minSleep && patient
	t.shortSleep.Store(soon)
	return soon || !t.inbox.filled.Load()
}

// wantsRoom reports whether the thread may need an answer before it can fire.
func (t *thread) wantsRoom() bool {
	if t.shared != nil {
		return t.blocked == len(t.lanes)
	}
	return t.blocked > 0
}

// addIdle adds the part of a wait that lay within the measurement.
func (t *thread) addIdle(from, to time.Duration) {
	t.idleFor += max(0, t.run.clipEnd(to)-max(from, time.Duration(t.run.measurementAt.Load())))
}

// noteLate records that the thread wanted to continue at one moment and did so at
// another.
func (t *thread) noteLate(wanted, at time.Duration) {
	if at-wanted < leastLate || !t.scheduled() || t.left == 0 {
		return
	}
	t.run.watchdog.note(frozeSending, wanted, at)
	t.caughtUpAt, t.laterAnswered = 0, false
	if !t.disturbed {
		t.levelBefore = t.inFlight.Load()
	}
	t.run.disturbed.begin(wanted, at, t.disturbed)
	t.disturbed = true
}

// endDisturbance ends a disturbance once all late events are sent, something that was
// sent later is answered, and the number of events in flight is back to its earlier
// level, or to the mean so far: at the beginning of a run nothing was in flight.
func (t *thread) endDisturbance(now time.Duration) {
	if !t.disturbed {
		return
	}
	if t.caughtUpAt == 0 {
		if len(t.asleep) > 0 && t.asleep[0].ready <= now {
			return
		}
		if t.shared != nil && t.shared.n > 0 || t.anyQueued() {
			return
		}
		t.caughtUpAt = now
	}
	if !t.laterAnswered && t.left > 0 {
		return
	}
	var area float64
	for _, a := range t.area {
		area += a
	}
	if n := t.inFlight.Load(); n > t.levelBefore && float64(n) > area/now.Seconds() {
		return
	}
	t.disturbed = false
	t.run.disturbed.end(now)
}

// begin makes every stream wait for its first batch. In a run with a lead it also makes the
// lanes, and what they need.
func (t *thread) begin() {
	early := t.run.Now() < 0
	now := max(0, t.run.Now())
	t.left = len(t.streams)
	if len(t.streams) == 1 {
		t.shared = nil
	}
	for _, s := range t.streams {
		switch {
		case early:
			t.prepareLane(s, now)
		case t.shared != nil: // create the lanes before the first stream waits for one of them
			t.lane(t.run.target.Route(s.id), now)
		}
		if t.scheduled() {
			s.end = t.run.partitioner.Before(s.id, t.run.phases[0].to)
			t.sleep(s)
			continue
		}
		t.enqueue(s, now)
	}
}

// prepareLane makes the lane that serves a stream, and has it allocate what its first batch
// needs.
func (t *thread) prepareLane(s *stream, now time.Duration) {
	l := t.run.target.Route(s.id)
	if l == nil || t.laneOf(l.ID()) != nil {
		return
	}
	ls := t.lane(l, now)
	if t.shared == nil {
		ls.queue.reserve()
		t.queued.add(ls.index) // so that the set has its size
		t.queued.remove(ls.index)
	}
	if prepare := l.Capabilities().Prepare; prepare != nil {
		prepare()
	}
}

// stopped reports whether a limit or a stop has ended the firing.
func (t *thread) stopped(now time.Duration) bool {
	r := t.run
	return now >= time.Duration(min(r.stopAt.Load(), r.byteLimitAt.Load())) ||
		(!t.scheduled() && now >= time.Duration(r.measurementEnd.Load()))
}

// firing reports whether batches remain that may still be fired.
func (t *thread) firing(now time.Duration) bool {
	if t.run.leaseOver(now) || t.stopped(now) {
		return false
	}
	if t.run.fed(now) {
		return false
	}
	if t.scheduled() {
		return t.left > 0
	}
	return t.run.measurementLeft.Load() > 0
}

// sleep makes a stream wait until its next batch is ready.
func (t *thread) sleep(s *stream) {
	if t.advance(s) {
		t.asleep.push(s)
	}
}

// advance computes when a stream's next batch is ready, in its next phase if the
// current one is over. It returns false if the schedule has no more events for the
// stream.
func (t *thread) advance(s *stream) bool {
	for s.next >= s.end {
		if s.phase+1 == len(t.run.phases) {
			t.left--
			return false
		}
		s.phase++
		s.end = t.run.partitioner.Before(s.id, t.run.phases[s.phase].to)
	}
	if s.ready = t.readyAt(s); s.ready == Never {
		t.left--
		return false
	}
	return true
}

func (t *thread) due(s *stream, k uint64) time.Duration { return t.run.due(s.id, k) }

// readyAt returns when the next batch of a stream is ready: at once if its size is
// fixed or no linger is set, else when it is full or its linger is over.
func (t *thread) readyAt(s *stream) time.Duration {
	first := t.due(s, s.next)
	p := &t.run.plan
	if first == Never || p.BatchEvents > 0 || p.Linger == 0 {
		return first
	}
	ready := first + p.Linger
	if l := t.run.target.Route(s.id); l != nil {
		if room := uint64(l.Room(s.id, s.next)); room > 0 && s.next+room <= s.end {
			ready = min(ready, t.due(s, s.next+room-1))
		}
	}
	return ready
}

// queueReady queues the streams whose batches are ready at their lanes.
func (t *thread) queueReady(now time.Duration) {
	for len(t.asleep) > 0 && t.asleep[0].ready <= now {
		t.enqueue(t.asleep.pop(), now)
	}
	if n := t.allowed(); n > 0 {
		// Only as many as the gate has events for: most of thousands of streams
		// would return to the queue.
		for _, s := range t.gated[:n] {
			t.enqueue(s, now)
		}
		t.gated = append(t.gated[:0], t.gated[n:]...)
	}
}

// enqueue puts a stream with a batch ready at the end of its lane's queue.
func (t *thread) enqueue(s *stream, now time.Duration) {
	l := t.run.target.Route(s.id)
	if l == nil {
		if at := t.overflowTime(s); len(t.unrouted) == 0 || at < t.unroutedOverflow {
			t.unroutedOverflow = at
		}
		t.unrouted = append(t.unrouted, s)
		return
	}
	t.enqueueOn(t.lane(l, now), s)
}

// enqueueOn puts a stream at the end of a lane's queue.
func (t *thread) enqueueOn(ls *laneState, s *stream) {
	if at := t.overflowTime(s); ls.queue.n == 0 || at < ls.queue.overflowAt {
		ls.queue.overflowAt = at
	}
	ls.queue.push(s)
	if t.shared == nil {
		t.queued.add(ls.index)
	}
}

// anyQueued reports whether a stream waits in the queue of a lane of its own.
func (t *thread) anyQueued() bool {
	for i := t.queued.next(0); i >= 0; i = t.queued.next(i + 1) {
		if t.lanes[i].queue.n > 0 {
			return true
		}
		t.queued.remove(i)
	}
	return false
}

// lane returns the engine's side of a lane, and creates it on first use.
func (t *thread) lane(l Lane, now time.Duration) *laneState {
	ls := t.laneOf(l.ID())
	if ls == nil {
		ls = &laneState{Lane: l, index: len(t.lanes), firstSeen: now, queue: t.shared}
		if m := t.run.mix; m != nil {
			ls.part = m.partOfLane(l.ID())
		}
		if ls.queue == nil {
			ls.queue = &backlog{}
		}
		ls.batchGroup = l.Capabilities().BatchGroup
		if t.run.plan.Concurrency == 0 {
			at := time.Duration(0)
			if !t.scheduled() {
				at = now
			}
			ls.slots.fill(t.run.plan.MaxInFlight, at)
		}
		t.setLane(l.ID(), ls)
		t.lanes = append(t.lanes, ls)
		if t.shared != nil {
			t.freest.add()
			t.updateRank(ls)
		}
		t.run.assignLane(l.ID(), t)
	}
	return ls
}

// laneOf returns the engine's side of the lane with an ID; nil if it was not seen yet.
func (t *thread) laneOf(id int) *laneState {
	if id < len(t.byID) {
		return t.byID[id]
	}
	return nil
}

func (t *thread) setLane(id int, ls *laneState) {
	if n := id + 1 - len(t.byID); n > 0 {
		t.byID = append(t.byID, make([]*laneState, n)...)
	}
	t.byID[id] = ls
}

// room returns how many more batches the bound allows on a lane.
func (t *thread) room(ls *laneState) int {
	if ls.full {
		return 0
	}
	if t.run.plan.Concurrency > 0 {
		return t.callerSlots.n
	}
	return ls.slots.n
}

// flush writes what was fired.
func (t *thread) flush() {
	for _, ls := range t.unflushed {
		ls.unflushed = false
		ls.Flush()
	}
	t.unflushed = t.unflushed[:0]
}

// nextWake returns when the thread must wake, or that its work is done.
func (t *thread) nextWake(now time.Duration, firing bool) (wake time.Duration, end bool) {
	r := t.run
	if now >= time.Duration(r.abortAt.Load()) || (!firing && t.batchesInFlight == 0) {
		return 0, true
	}
	wake = time.Duration(t.rec.oldest+1) * t.rec.length
	stop, measurement := time.Duration(r.stopAt.Load()), time.Duration(r.measurementEnd.Load())
	// The drain begins when the firing ends: with the measurement, with the last event
	// or by a stop. An interruption during the drain ends it at once.
	began := min(stop, measurement)
	if !firing {
		began = min(began, t.firingEnded(now))
	}
	deadline := Never
	switch {
	case began == Never:
	case stop != Never && began < stop && r.reason.Load() == Interrupted:
		deadline = stop
	default:
		deadline = began + r.plan.Drain
	}
	if now >= deadline {
		return 0, true
	}
	wake = min(wake, deadline)
	if firing {
		if t.more {
			wake = min(wake, now)
		}
		if len(t.asleep) > 0 {
			wake = min(wake, max(t.asleep[0].ready, now+t.minSleep))
		}
		if !t.scheduled() && now < measurement {
			wake = min(wake, measurement)
		}
	}
	return wake, false
}

// firingEnded returns when this thread had nothing left to fire.
func (t *thread) firingEnded(now time.Duration) time.Duration {
	if t.ended == 0 {
		t.ended = now
	}
	return t.ended
}

// handOver passes the pages of past intervals to the collector.
func (t *thread) handOver(now time.Duration) {
	if i := int(now / t.rec.length); i > t.rec.oldest {
		t.rec.takeBefore(i, func(p *page) { t.run.pages.put(t.id, p) })
		t.run.pages.markComplete(t.id, i)
		for ; t.compacted < t.run.phaseAt(now)-1; t.compacted++ { // answers may still come for the phase before the current one
			t.lower[t.compacted].compact()
		}
	}
}
