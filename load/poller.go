package load

import (
	"runtime"
	"time"
)

// A Poller is a Target that needs no goroutines of its own to read answers: the
// sending threads wait in it, and it completes what comes on the thread that is
// waiting. That spares the switch between two threads that each answer would cost,
// which for small answers is more than the answer; and the thread knows for how long
// an answer may have waited for it (Outcome.Earliest).
type Poller interface {
	Target
	// Poll is called before Start: thread t, of `of` threads, will wait in the target
	// and drive the clients c with c mod of = t. Nil: it cannot wait there.
	Poll(t, of int) Waiting
	// Threads returns how many sending threads the target prefers on a number of
	// processors, if the plan leaves that open and they may wait in the target.
	// Answers then need no further threads, and the system may share the processors.
	Threads(processors int) int
}

// A Waiting is where one sending thread waits.
type Waiting interface {
	// Prepare is called once, on the thread that will wait, to which its goroutine is
	// locked until Leave has returned.
	Prepare()
	// Wait returns when it completed something, at an offset from the start of
	// the run (Never: not by itself), or soon after a Wake since it last
	// returned; it may return early. It must not fire. patient says that nothing
	// waits for an answer: a target that learns otherwise when answers arrived may
	// leave them unread for a while. idle says that no answer is to come.
	Wait(until time.Duration, patient, idle bool)
	// Wake may be called from anywhere, also from within Wait.
	Wake()
	// Leave says that the thread does not wait any more, even if connections have
	// more to read.
	Leave()
}

// polled is the waiter of a thread that waits in its target.
type polled struct{ w Waiting }

func (p polled) prepare() {
	runtime.LockOSThread() // what the target learns of its thread stays true
	precisely()
	p.w.Prepare()
}
func (p polled) wait(until time.Duration, patient, idle bool) { p.w.Wait(until, patient, idle) }
func (p polled) wake()                                        { p.w.Wake() }
func (p polled) close() {
	p.w.Leave()
	runtime.UnlockOSThread()
}

// polling is the waiter of a thread whose target reads answers for it, nil
// where there is none.
func polling(r *Run, t, of int) waiter {
	if p, ok := r.target.(Poller); ok && !r.plan.Portable {
		if w := p.Poll(t, of); w != nil {
			return polled{w}
		}
	}
	return nil
}
