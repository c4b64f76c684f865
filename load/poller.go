package load

import (
	"runtime"
	"time"
)

// A Poller is a Target that needs no goroutines to read answers: the sending threads
// wait in it, and it completes what arrives on the thread that is waiting. That saves a
// switch between two threads for each answer, which for small answers costs more than
// the answer itself. The thread also knows how long an answer may have waited for it
// (Outcome.Earliest).
type Poller interface {
	Target
	// Poll is called before Start for thread t of the given number. That thread will
	// wait in the target and drive the clients c with c mod of = t. A nil result means
	// that it cannot wait there.
	Poll(t, of int) PollWaiter
	// Threads returns how many sending threads the target prefers on a number of
	// processors, if the plan does not set the number and the threads wait in the
	// target. Answers then need no further threads, and the system under test may share
	// the processors.
	Threads(processors int) int
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
	if p, ok := r.target.(Poller); ok && !r.plan.Portable {
		if w := p.Poll(t, of); w != nil {
			return pollWaiter{w}
		}
	}
	return nil
}
