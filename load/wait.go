package load

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// A waiter lets a sending thread sleep until a point in time or until another goroutine
// wakes it, whichever comes first.
type waiter interface {
	// prepare is called once, on the thread that will wait.
	prepare()
	// wait returns at until (an offset from the start of the run; Never: only when
	// woken), or after a wake since the last return. It may return early. patient: no
	// event needs an answer before it can be sent; idle: no answer is expected.
	wait(until time.Duration, patient, idle bool)
	// wake may be called from any goroutine.
	wake()
	close()
}

// timerWaiter waits by the runtime's own timers: cheap to wake, and late by about half
// a millisecond where the runtime rounds short sleeps up. It is used if no schedule
// needs precision, and under virtual time.
type timerWaiter struct {
	start time.Time
	woken chan struct{}
	timer *time.Timer
}

func newTimerWaiter(start time.Time) *timerWaiter {
	return &timerWaiter{start: start, woken: make(chan struct{}, 1)}
}

func (w *timerWaiter) prepare() {}

func (w *timerWaiter) wait(until time.Duration, _, _ bool) {
	if until == Never {
		<-w.woken
		return
	}
	d := until - time.Since(w.start)
	if d <= 0 {
		return
	}
	if w.timer == nil {
		w.timer = time.NewTimer(d)
	} else {
		w.timer.Reset(d)
	}
	select {
	case <-w.woken:
		w.timer.Stop()
	case <-w.timer.C:
	}
}

func (w *timerWaiter) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

func (w *timerWaiter) close() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// A PollWaiter lets one sending thread wait in the target.
type PollWaiter interface {
	// Prepare is called once, on the thread that will wait. Its goroutine is locked to
	// that thread until Leave has returned.
	Prepare()
	// Wait returns when it has completed something, at until (an offset from the start
	// of the run; Never: no time limit), or soon after a Wake since it last returned.
	// It may return early. It must not fire. patient means that no event needs an
	// answer before it can be sent: a target that has another way to learn when answers
	// arrived may leave them unread for a while. idle means that no answer is expected.
	Wait(until time.Duration, patient, idle bool)
	// Wake may be called from any goroutine, also from within Wait.
	Wake()
	// Leave announces that the thread no longer waits, even if connections have more to
	// read.
	Leave()
}

// pollWaiter is the waiter of a thread that waits in its target.
type pollWaiter struct{ w PollWaiter }

func (p pollWaiter) prepare() {
	runtime.LockOSThread() // the target may rely on the identity of the thread
	tuneThread()
	p.w.Prepare()
}
func (p pollWaiter) wait(until time.Duration, patient, idle bool) { p.w.Wait(until, patient, idle) }
func (p pollWaiter) wake()                                        { p.w.Wake() }
func (p pollWaiter) close() {
	p.w.Leave()
	runtime.UnlockOSThread()
}

// newPollWaiter returns the waiter of a thread whose target reads answers on it, nil if
// the target does not.
func newPollWaiter(r *Run, t, of int) waiter {
	if p := r.can.Poller; p != nil && !r.plan.Portable {
		if w := p.Poll(t, of); w != nil {
			return pollWaiter{w}
		}
	}
	return nil
}

// Connections from which on a run has a lead, and the lead for each of them. For a connection, a
// target starts two goroutines and makes some system calls, which takes 20 us; lanes and their
// first buffers take as long, and so does a collection, divided among them.
const (
	manyConnections   = 256
	leadPerConnection = 80 * time.Microsecond
)

// Lead returns how long before its time 0 a run starts its target and makes its lanes. With
// thousands of connections the first events would be late otherwise.
func Lead(target Target) time.Duration {
	connections := target.Capabilities().Connections
	if connections == nil {
		return 0
	}
	if n := connections(); n >= manyConnections {
		return time.Duration(n) * leadPerConnection
	}
	return 0
}

// collectEarly runs the collector when the threads have made their lanes, if the size of the heap
// lets it end before time 0. With ten thousand lanes the heap has doubled several times by then,
// so that the next collection would begin with the first events; it would take both of two
// processors for some tens of milliseconds. After this one, the heap may grow by as much as the
// lanes take before there is another. A heap that is too large to be collected in the rest of the
// lead was large before the lanes, so that it usually has room for them without a collection.
func (r *Run) collectEarly() {
	r.begun.Wait()
	if time.Until(r.start) > collectionTime(r.memory.size()) {
		r.memory.collect()
	}
}

// A memory is what a run collects before its time 0.
type memory interface {
	size() (bytes uint64) // live, or not swept yet
	collect()             // returns when the collection has ended
}

// A goMemory is the heap of the process.
type goMemory struct{}

func (goMemory) size() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func (goMemory) collect() { runtime.GC() }

// How long a collection takes at most: at least, and for each MiB. On one processor that others
// used as well it took up to 0.6 ms for each MiB of objects with two pointers.
const (
	leastCollection  = 5 * time.Millisecond
	collectionPerMiB = time.Millisecond
)

// collectionTime returns how long a collection of a heap of this size takes at most.
func collectionTime(bytes uint64) time.Duration {
	return leastCollection + time.Duration(bytes>>10)*collectionPerMiB>>10
}
