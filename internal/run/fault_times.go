package run

import (
	"slices"
	"sync"
	"time"

	"carronade/load"
)

// afterFault is how long after a fault the end of the system is still its effect: the process that was
// killed is gone at once, and the others of the system may need a while to stop.
const afterFault = 30 * time.Second

// faultWindows are the times in which faults of the run ended processes of the system that it started
// or watches. They are safe for concurrent use.
type faultWindows struct {
	mu    sync.Mutex
	kills []killing
}

// A killing is the time in which a fault ended processes.
type killing struct{ from, until time.Time }

// kill calls kill, which reports whether it reached a process of the system. The lock is held during
// the call, because a process ends before its signal returns: explains waits for it.
func (b *faultWindows) kill(kill func() bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from := time.Now()
	if kill() {
		b.kills = append(b.kills, killing{from, time.Now()})
	}
}

// explains reports whether a fault may have ended the system at a moment.
func (b *faultWindows) explains(at time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.kills, func(k killing) bool {
		return !at.Before(k.from) && !at.After(k.until.Add(afterFault))
	})
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
