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
	// Poll says, before Start, that thread t of so many will wait in the
	// target; it drives the clients c with c mod of = t. Nil: it cannot.
	Poll(t, of int) Waiting
	// Threads is how many sending threads it would have on so many processors,
	// where the plan leaves that open and they may wait in it: answers take no
	// threads of their own then, and the system may share the processors.
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
	// Leave says that the thread waits no more, though connections may have
	// more to say.
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
