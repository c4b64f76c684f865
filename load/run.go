package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"carronade/measure"
)

// A Run is one execution of a plan against a target. It is a value: several may be in
// progress at once, and they share no global state. Its methods are safe for concurrent
// use.
type Run struct {
	plan        Plan
	target      Target
	can         TargetCapabilities // of the target
	partitioner Partitioner
	mix         *Mix    // the target, if it has parts; else nil
	shares      *shares // of the parts, without a schedule; else nil
	gated       []*Gate // of the run, or of its parts
	own         []int32 // the streams that are fired here, if they are not all
	phases      []phase
	mode        Mode

	starting sync.Mutex     // guards start and threads, until the run has begun
	begun    sync.WaitGroup // the threads wait for time 0, or for their streams
	memory   memory         // collected before time 0 of a run with a lead

	start    time.Time
	threads  []*thread
	byLane   atomic.Pointer[[]atomic.Pointer[thread]]
	laneMu   sync.Mutex
	pages    pageQueue
	consumed []*consumedRecorder // by reader

	watchdog  watchdog
	disturbed disturbances

	stopAt         atomic.Int64  // when firing stopped early; Never while it has not
	byteLimitAt    atomic.Int64  // when the limit on bytes was reached; Never before
	abortAt        atomic.Int64  // when waiting for answers ended; Never before
	measurementAt  atomic.Int64  // start of the measurement; Never until known
	measurementEnd atomic.Int64  // end of the measurement; Never until known
	lastFiredAt    atomic.Int64  // when the last of a limited number of events was fired; Never while some are left
	edition        atomic.Uint32 // counts changes of the ends of phases: stopAt, measurementAt, measurementEnd
	reason         atomic.Value  // Reason
	feedEnded      atomic.Bool   // the allowance ended a run without a schedule

	warmLeft, measurementLeft atomic.Int64  // events left to claim, without a schedule
	bytes                     atomic.Int64  // sent so far
	answered                  atomic.Uint64 // events answered so far
	failed                    atomic.Uint64

	lastAnswer atomic.Int64 // when the newest answer that acked events came
	lastDone   atomic.Int64 // when the newest outcome came
	longest    atomic.Int64 // longest gap without an answer
	stallMu    sync.Mutex   // guards the four fields below, and changes of longest
	longestAt  time.Duration
	stalled    time.Duration
	counted    time.Duration // stalls up to here are counted
	stalls     measure.Stall // the individual stalls

	done   chan struct{}
	result *Result
	err    error
}

// Defaults of a plan.
const (
	defaultInFlight = 5
	defaultDrain    = 10 * time.Second
	defaultInterval = time.Second
)

// New checks a plan and prepares a run of it; nothing is fired before Start.
func New(plan Plan, target Target) (*Run, error) {
	if plan.Schedule != nil && plan.Concurrency > 0 {
		return nil, errors.New("a run has a schedule or a concurrency, not both")
	}
	plan.MaxInFlight = cmp.Or(plan.MaxInFlight, defaultInFlight)
	plan.Drain = cmp.Or(plan.Drain, defaultDrain)
	plan.Interval = cmp.Or(plan.Interval, defaultInterval)
	can := target.Capabilities()
	if can.OwnBatching != nil {
		plan.Linger, plan.MaxInFlight = 0, can.OwnBatching()
	}
	if m, ok := target.(*Mix); ok && m.scheduled {
		if plan.Schedule == nil {
			return nil, errors.New("the parts have schedules, and the run has none")
		}
		plan.Schedule = m.schedules()
	}
	r := &Run{plan: plan, target: target, can: can, partitioner: target.Partitioner(), phases: plan.phases(), memory: goMemory{}, done: make(chan struct{})}
	r.mode = plan.Mode()
	if r.mix, _ = target.(*Mix); r.mix != nil {
		if plan.Gate != nil {
			return nil, errors.New("the parts of a run have gates, not the run")
		}
		if plan.Schedule == nil {
			r.shares = newShares(r.mix.parts, r.wakeAll)
		}
	}
	r.gated = r.gates()
	r.stopAt.Store(int64(Never))
	r.abortAt.Store(int64(Never))
	r.byteLimitAt.Store(int64(Never))
	r.measurementAt.Store(int64(Never))
	r.measurementEnd.Store(int64(Never))
	r.lastFiredAt.Store(int64(Never))
	first := r.phases[0]
	if first.warm && plan.Schedule == nil && plan.WarmupEvents > 0 {
		r.warmLeft.Store(int64(plan.WarmupEvents))
	} else {
		r.measurementAt.Store(int64(r.phases[r.firstMeasurement()].start))
	}
	if last := r.phases[len(r.phases)-1]; plan.Schedule == nil && plan.Measurement.Events == 0 {
		r.measurementLeft.Store(1<<63 - 1)
	} else if plan.Schedule == nil {
		r.measurementLeft.Store(int64(plan.Measurement.Events))
	} else if last.end != Never && last.to == plan.Schedule.Count(last.end) {
		r.measurementEnd.Store(int64(last.end)) // the time, not a number of events, ends it
	}
	if plan.Schedule == nil && plan.Measurement.Time > 0 && plan.WarmupEvents == 0 {
		r.measurementEnd.Store(int64(plan.WarmupTime + plan.Measurement.Time))
	}
	return r, nil
}

// firstMeasurement returns the index of the first phase of the measurement.
func (r *Run) firstMeasurement() int {
	if r.phases[0].warm {
		return 1
	}
	return 0
}

// Threads returns the number of sending threads.
func (r *Run) Threads() int {
	most := r.plan.Threads
	if most <= 0 {
		most = Processors()
		if p := r.can.Poller; p != nil && !r.plan.Portable {
			most = max(1, p.Threads(most))
		}
	}
	n := max(1, min(r.ownClients(), most))
	if r.plan.Concurrency > 0 {
		n = min(n, r.plan.Concurrency)
	}
	return n
}

// Start begins to fire, at the plan's StartAt if it has one. The run continues until its
// limits, Stop or Abort. A run that was stopped before fires nothing.
func (r *Run) Start() {
	lead := Lead(r.target)
	time.Sleep(time.Until(r.plan.StartAt.Add(-lead)))
	n := r.prepare(lead)
	r.target.Start(r)
	if !r.plan.Portable {
		addProcs(n)
	}
	var firing sync.WaitGroup
	for _, t := range r.threads {
		firing.Go(t.loop) // which waits for time 0
	}
	if lead > 0 {
		go r.collectEarly() // time 0 does not wait for it
	}
	time.Sleep(time.Until(r.start))
	if !r.plan.Portable {
		r.watchdog.start(r.Now)
	}
	go r.collect(&firing)
}

// prepare makes the threads and returns their number. The times of the run count from the
// plan's StartAt, or from the end of the lead.
func (r *Run) prepare(lead time.Duration) int {
	r.starting.Lock()
	defer r.starting.Unlock()
	n := r.Threads()
	r.begun.Add(n)
	if r.start = r.plan.StartAt; r.start.IsZero() {
		r.start = time.Now().Add(lead)
	}
	none := []atomic.Pointer[thread]{}
	r.byLane.Store(&none)
	r.pages.init(n)
	for i := range r.plan.readers() {
		group := i
		if len(r.plan.Groups) > 0 {
			group++
		}
		r.consumed = append(r.consumed, newConsumedRecorder(r, group))
	}
	for i := range n {
		r.threads = append(r.threads, newThread(r, i, n))
	}
	for s := range int32(r.partitioner.Streams()) {
		if r.partitioner.Event(s, 0) == math.MaxUint64 {
			continue // no event belongs to it, such as of a partition to which no key leads
		}
		client := r.target.Client(s)
		if !r.plan.Portion.Has(client) {
			continue
		}
		r.own = append(r.own, s)
		r.threads[(client-r.plan.Portion.From)%n].add(s)
	}
	for _, g := range r.gated {
		g.onChange(r.wakeAll)
	}
	r.watchdog.clip, r.watchdog.cause = r.within, r.plan.Cause
	r.watchdog.resume = make(chan struct{}, 1)
	r.watchdog.active.Store(int32(n)) //nolint:gosec // threads
	return n
}

// Started returns when the run began, offset 0 of all its times; zero before Start.
func (r *Run) Started() time.Time {
	r.starting.Lock()
	defer r.starting.Unlock()
	return r.start
}

// Stop ends the firing now. Answers of batches in flight are still waited for, for at
// most the plan's drain; events due by now and not sent are unsent. If the firing was
// already over, an interruption ends the wait. Stop may be called before Start.
func (r *Run) Stop(why Reason) {
	// Set the reason first: once threads see the stop, the run may end before this
	// function continues.
	r.reason.CompareAndSwap(nil, why)
	r.markNow(&r.stopAt)
}

// markNow sets a moment to now if it is not set, and wakes all threads. Before Start,
// now is the beginning of the run.
func (r *Run) markNow(moment *atomic.Int64) {
	r.starting.Lock()
	at := time.Duration(0)
	if !r.start.IsZero() {
		at = max(0, r.Now())
	}
	moment.CompareAndSwap(int64(Never), int64(at))
	r.edition.Add(1)
	threads := r.threads
	r.starting.Unlock()
	for _, t := range threads {
		t.wait.wake()
	}
}

// Abort ends the run now without waiting for answers.
func (r *Run) Abort() { r.End(Interrupted) }

// End is Abort with another reason.
func (r *Run) End(why Reason) {
	r.Stop(why)
	r.markNow(&r.abortAt)
}

// Done is closed when the run has ended and its result is available.
func (r *Run) Done() <-chan struct{} { return r.done }

// Wait returns the result once the run has ended, which happens only after Start. An
// error means that the accounting did not add up, which is a bug in the program or in a
// target; the result is returned even then.
func (r *Run) Wait() (*Result, error) {
	<-r.done
	return r.result, r.err
}

// Fire runs a plan to its end. When the context ends, the run is stopped, drained and
// reported as interrupted.
func Fire(ctx context.Context, plan Plan, target Target) (*Result, error) {
	r, err := New(plan, target)
	if err != nil {
		return nil, err
	}
	r.Start()
	select {
	case <-ctx.Done():
		r.Stop(Interrupted)
	case <-r.done:
	}
	return r.Wait()
}

// Now implements Sink.
func (r *Run) Now() time.Duration { return time.Since(r.start) }

// Complete implements Sink.
func (r *Run) Complete(out []Outcome) {
	if len(out) == 0 {
		return
	}
	t := r.threadOf(int(out[0].Lane))
	t.inbox.complete(out)
	if !t.shortSleep.Load() {
		t.wait.wake()
	}
}

// Ready implements Sink.
func (r *Run) Ready(lane int, at time.Duration) {
	if lane >= 0 {
		if t := r.threadOf(lane); t != nil {
			t.inbox.addReady(lane, at)
			t.wait.wake()
		}
		return
	}
	for _, t := range r.threads {
		t.inbox.addReady(lane, at)
		t.wait.wake()
	}
}

// threadOf returns the thread that owns a lane, nil if no thread has used it yet.
func (r *Run) threadOf(lane int) *thread {
	known := *r.byLane.Load()
	if lane < len(known) {
		return known[lane].Load()
	}
	return nil
}

// assignLane records that a lane belongs to a thread, before anything is fired on it. The list
// doubles when it is full: a copy for each of ten thousand lanes would delay the start.
func (r *Run) assignLane(lane int, t *thread) {
	r.laneMu.Lock()
	defer r.laneMu.Unlock()
	known := *r.byLane.Load()
	if lane >= len(known) {
		next := make([]atomic.Pointer[thread], max(2*len(known), lane+1))
		for i := range known {
			next[i].Store(known[i].Load())
		}
		r.byLane.Store(&next)
		known = next
	}
	if old := known[lane].Load(); old != nil && old != t {
		panic(fmt.Sprintf("load: lane %d serves streams of two clients", lane))
	}
	known[lane].Store(t)
}

func (r *Run) wakeAll() {
	for _, t := range r.threads {
		t.wait.wake()
	}
}

// Stopping is why Stop has ended the firing; "": it has not.
func (r *Run) Stopping() Reason {
	why, _ := r.reason.Load().(Reason)
	return why
}

// Measuring reports whether the warm-up is over. It is called after Start.
func (r *Run) Measuring() bool { return r.phaseAt(r.Now()) >= r.firstMeasurement() }

// phaseAt returns the phase of the run at a point in time: an index into phases, or
// len(phases) for the drain.
func (r *Run) phaseAt(at time.Duration) int {
	if at >= time.Duration(r.measurementEnd.Load()) || at >= time.Duration(r.stopAt.Load()) {
		return len(r.phases)
	}
	if at < time.Duration(r.measurementAt.Load()) {
		return 0
	}
	i := r.firstMeasurement()
	for i+1 < len(r.phases) && at >= r.phases[i].end {
		i++
	}
	return i
}

// phaseEnd returns when a phase from phaseAt ends, as far as is known.
func (r *Run) phaseEnd(i int) time.Duration {
	end := min(time.Duration(r.measurementEnd.Load()), time.Duration(r.stopAt.Load()))
	switch {
	case i == len(r.phases):
		return Never
	case i < r.firstMeasurement():
		return min(time.Duration(r.measurementAt.Load()), end)
	case i+1 < len(r.phases):
		return min(r.phases[i].end, end)
	}
	return end
}

// clipEnd returns at, or the end of the measurement if that is earlier.
func (r *Run) clipEnd(at time.Duration) time.Duration {
	return min(at, time.Duration(r.measurementEnd.Load()), time.Duration(r.stopAt.Load()), time.Duration(r.byteLimitAt.Load()))
}

// within returns how much of a span lies within the measurement, as far as its ends are
// known.
func (r *Run) within(from, to time.Duration) time.Duration {
	return max(0, r.clipEnd(to)-max(from, time.Duration(r.measurementAt.Load())))
}

// claim takes up to n events from the budget of a run without a schedule and returns
// the phase that they belong to.
func (r *Run) claim(n int, now time.Duration) (got, phase int) {
	measurement := r.firstMeasurement()
	if measurement == 1 && r.plan.WarmupEvents > 0 {
		if got := takeFrom(&r.warmLeft, int64(n)); got > 0 {
			return int(got), 0
		}
		if r.measurementAt.CompareAndSwap(int64(Never), int64(now)) {
			if r.plan.Measurement.Time > 0 {
				r.measurementEnd.Store(int64(now + r.plan.Measurement.Time))
			}
			r.edition.Add(1)
		}
	} else if measurement == 1 && now < r.plan.WarmupTime {
		return n, 0
	}
	if r.plan.Measurement.Events == 0 {
		return n, measurement
	}
	got = int(takeFrom(&r.measurementLeft, int64(n)))
	if got > 0 && r.measurementLeft.Load() <= 0 {
		r.lastFiredAt.Store(int64(now))
	}
	return got, measurement
}

// unclaim returns events that a full lane did not accept.
func (r *Run) unclaim(n, phase int) {
	switch {
	case n == 0:
	case phase < r.firstMeasurement():
		if r.plan.WarmupEvents > 0 {
			r.warmLeft.Add(int64(n))
		}
	case r.plan.Measurement.Events > 0:
		r.lastFiredAt.Store(int64(Never))
		r.measurementLeft.Add(int64(n))
	}
}

// noteAnswer records that a batch was completed, for the gaps between answers. A gap
// begins with the newest answer that acked events. If batches wait for a schedule or
// for another run, it does not begin before a batch was in flight or should have been.
// In other runs, time with nothing in flight is a gap too, because a lane is waiting to
// connect. A gap counts if it begins within the measurement. Most answers come soon
// after another and cost two loads.
//
// A gap ends when the reader last looked in vain, if the answer may have waited long
// for its reader: from then on answers may have come at any time.
func (r *Run) noteAnswer(o *Outcome, since time.Duration) {
	storeMax(&r.lastDone, int64(o.Done))
	if o.Done-since < leastFreeze {
		since = o.Done
	}
	if gap := int64(since) - r.lastAnswer.Load(); gap > min(r.longest.Load(), int64(StallAfter)) {
		r.noteGap(since, o.Acked > 0)
	}
	if o.Acked > 0 {
		storeMax(&r.lastAnswer, int64(o.Done))
	}
}

func (r *Run) noteGap(until time.Duration, acked bool) {
	waiting := time.Duration(0)
	if r.plan.Schedule != nil || r.plan.Gate != nil {
		waiting = Never
		for _, t := range r.threads {
			waiting = min(waiting, time.Duration(t.waitingSince.Load()))
		}
	}
	r.stallMu.Lock()
	defer r.stallMu.Unlock()
	since := max(time.Duration(r.lastAnswer.Load()), waiting, time.Duration(r.measurementAt.Load()))
	gap := until - since
	if gap <= 0 || since >= r.clipEnd(until) {
		return
	}
	if gap > time.Duration(r.longest.Load()) {
		r.longest.Store(int64(gap))
		r.longestAt = since
	}
	if gap > StallAfter {
		from, to := max(since, r.counted), r.clipEnd(until)
		r.stalled += max(0, to-from)
		r.counted = max(r.counted, to)
		r.stalls.Add(since, until)
	}
	if acked { // under the lock, so that two threads do not count one gap twice
		storeMax(&r.lastAnswer, int64(until))
	}
}

// noteOpenGap records the gap that is still open when all threads have ended. Without a
// schedule or a gate it ends with the measurement, and it does not count if the
// measurement ended because nothing was left to fire. Otherwise it ends when the thread
// that still expects answers has done its work.
func (r *Run) noteOpenGap() {
	if r.plan.Unanswered {
		return
	}
	if r.plan.Schedule == nil && r.plan.Gate == nil {
		end := min(r.stopAt.Load(), r.measurementEnd.Load())
		if end != int64(Never) && end <= min(r.lastFiredAt.Load(), r.byteLimitAt.Load()) {
			r.noteGap(time.Duration(end), false)
		}
		return
	}
	for _, t := range r.threads {
		if t.waitingSince.Load() != int64(Never) {
			r.noteGap(t.doneAt, false)
		}
	}
}

// StallAfter is the longest time without an answer that is not a stall.
const StallAfter = 100 * time.Millisecond

func storeMax(a *atomic.Int64, v int64) {
	for {
		old := a.Load()
		if v <= old || a.CompareAndSwap(old, v) {
			return
		}
	}
}

// checkFailureLimits stops the run when a limit on failures is reached.
func (r *Run) checkFailureLimits(events, failed uint64) {
	all := r.answered.Add(events)
	bad := r.failed.Add(failed)
	if failed == 0 {
		return
	}
	if why := r.plan.Measurement.Broken(bad, all); why != "" {
		r.Stop(why)
	}
}

// identities checks the two identities of a finished tally.
func identities(t *measure.Tally) error {
	if t.Offered != t.Sent+t.Dropped+t.Unsent {
		return fmt.Errorf("%s: offered %d is not sent %d + dropped %d + unsent %d", t.Name, t.Offered, t.Sent, t.Dropped, t.Unsent)
	}
	if t.Sent != t.Acked+t.Failed+t.Unknown {
		return fmt.Errorf("%s: sent %d is not acked %d + failed %d + unknown %d", t.Name, t.Sent, t.Acked, t.Failed, t.Unknown)
	}
	return nil
}
