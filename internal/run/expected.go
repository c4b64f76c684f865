package run

import (
	"sync"
	"time"

	"carronade/load"
)

// afterFault is how long after a fault the end of the system is still its effect: a process that was
// killed is gone at once, and a program that could not write needs a while to stop.
const afterFault = 30 * time.Second

// A breakage is what faults of the run did to the system that it started or watches, as far as that
// may end it. It is safe for concurrent use.
type breakage struct {
	mu    sync.Mutex
	spans []*breakageSpan
}

// A breakageSpan is the time of a fault. It lasts while until is zero.
type breakageSpan struct{ from, until time.Time }

// kill calls kill, which reports whether it reached a process of the system. Who asks meanwhile
// whether a fault explains an end waits for it: a process ends before its signal returns.
func (b *breakage) kill(kill func() bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from := time.Now()
	if kill() {
		b.spans = append(b.spans, &breakageSpan{from, time.Now()})
	}
}

// begin notes a fault that lasts until end is called.
func (b *breakage) begin() (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &breakageSpan{from: time.Now()}
	b.spans = append(b.spans, s)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		s.until = time.Now()
	}
}

// explains reports whether a fault may have ended the system at a moment.
func (b *breakage) explains(at time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.spans {
		if !at.Before(s.from) && (s.until.IsZero() || !at.After(s.until.Add(afterFault))) {
			return true
		}
	}
	return false
}

// goesOn reports whether the run goes on although the system that it started or watches has ended: a
// fault of its own may have ended that, and the target has other addresses, such as those of the
// other nodes of a cluster.
func (e *execution) goesOn() bool {
	return e.system.ended() != "" && e.broken.explains(e.system.Exit().At) && len(listening(e.Workload.Kind, e.Workload.URL)) > 1
}

// endedAlone returns how the system ended, if that was not to be expected; otherwise "".
func (e *execution) endedAlone() string {
	if e.goesOn() {
		return ""
	}
	return e.system.ended()
}

// gone reports whether nothing more comes from the system: it has ended, and that was not to be
// expected, or a fault left no connection to it.
func (e *execution) gone() bool { return e.endedAlone() != "" || e.leftAlone() != "" }

// interrupted notes that the user cut the waiting for events short. If the system is gone, that did it.
func (e *execution) interrupted(r *load.Result) {
	if !e.gone() {
		r.Stopped, r.Whole = load.Interrupted, false
	}
}
