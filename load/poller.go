package load

import "time"

// A Poller is a Target that needs no goroutines of its own to read answers:
// where no schedule asks for precision, the sending threads wait in it, and it
// settles what comes on the thread that is waiting. That spares the switch
// between two threads that each answer would cost, which for small answers is
// more than the answer.
//
// Under a schedule answers are read beside the sending thread, so that their
// times do not depend on what is being sent.
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
	// Wait returns when it settled something, at an offset from the start of
	// the run (Never: not by itself), or soon after a Wake since it last
	// returned; it may return early. It must not fire.
	Wait(until time.Duration)
	// Wake may be called from anywhere, also from within Wait.
	Wake()
	// Leave says that the thread waits no more, though connections may have
	// more to say.
	Leave()
}

// polled is the waiter of a thread that waits in its target.
type polled struct{ w Waiting }

func (p polled) prepare()                 {}
func (p polled) wait(until time.Duration) { p.w.Wait(until) }
func (p polled) wake()                    { p.w.Wake() }
func (p polled) close()                   { p.w.Leave() }

// polling is the waiter of a thread whose target reads answers for it, nil
// where there is none.
func polling(r *Run, t, of int) waiter {
	if p, ok := r.target.(Poller); ok && r.plan.Schedule == nil {
		if w := p.Poll(t, of); w != nil {
			return polled{w}
		}
	}
	return nil
}
