package host

import (
	"fmt"
	"io/fs"
	"math"
	"time"

	"carronade/internal/impair"
)

// A Watch detects problems with the host's clocks and processors during a
// measurement. It belongs to one goroutine, which calls Look about once a
// second.
type Watch struct {
	now  func() clocks
	root fs.FS

	group     cgroup
	last      clocks
	steps     int
	largest   time.Duration // of the steps
	all0      uint64        // processor ticks at the start
	steal0    uint64
	throttle0 uint64
}

// Thresholds: smaller values occur on any machine.
const (
	// LeastStep is how much the wall clock must move against the monotonic one
	// between two looks to count as set. A clock that is only disciplined moves
	// by at most half a millisecond a second (adjtimex(2)).
	LeastStep = 50 * time.Millisecond
	// LeastStolen is the least share of the machine's processor time, gone to
	// other guests, that is reported.
	LeastStolen = 0.02
	// LeastThrottled is the least share of the time, for which the container's
	// processor limit slowed the process, that is reported.
	LeastThrottled = 0.01
)

// NewWatch begins to watch the host.
func NewWatch() *Watch {
	start := time.Now()
	return newWatch(func() clocks {
		t := time.Now()
		mono := t.Sub(start)
		return clocks{wall: t.Round(0).Sub(start.Round(0)) + impair.Wall(mono), mono: mono} // Round(0) strips the monotonic reading
	}, hostRoot())
}

// clocks has both clocks at one moment, since the start.
type clocks struct{ wall, mono time.Duration }

func newWatch(now func() clocks, root fs.FS) *Watch {
	w := &Watch{now: now, root: root}
	w.last = now()
	if root != nil {
		w.group = findCgroup(root)
		w.all0, w.steal0 = stolen(text(root, "proc/stat"))
		w.throttle0 = w.group.throttled(root)
	}
	return w
}

// Look compares the clocks.
func (w *Watch) Look() {
	now := w.now()
	if step := (now.wall - w.last.wall) - (now.mono - w.last.mono); step.Abs() >= LeastStep {
		w.steps++
		if step.Abs() > w.largest.Abs() {
			w.largest = step
		}
	}
	w.last = now
}

// Steps is how many times the wall clock was set, and by how much at most.
func (w *Watch) Steps() (n int, largest time.Duration) { return w.steps, w.largest }

// Stolen is the share of the machine's processor time since the start that its
// hypervisor gave to others, 0 to 1.
func (w *Watch) Stolen() float64 {
	if w.root == nil {
		return 0
	}
	all, steal := stolen(text(w.root, "proc/stat"))
	if all <= w.all0 || steal <= w.steal0 {
		return 0
	}
	return float64(steal-w.steal0) / float64(all-w.all0)
}

// Throttled is how long the container's processor limit has delayed its
// processes since the start, summed over processors.
func (w *Watch) Throttled() time.Duration {
	if w.root == nil {
		return 0
	}
	if n := w.group.throttled(w.root); n > w.throttle0 {
		return time.Duration(min(n-w.throttle0, math.MaxInt64))
	}
	return 0
}

// Troubles returns texts for the user about what was wrong with the clock; none
// if it was right. Otherwise the measurements cannot be trusted.
func (w *Watch) Troubles() []string {
	w.Look()
	if w.steps == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the wall clock was set %s during the run, by up to %v: the machine slept or was moved, or its clock was corrected; run again when time synchronization is stable",
		times(w.steps), w.largest.Round(time.Millisecond))}
}

// Remarks returns texts for the user about processor time that the generator
// did not get. Its effect on the measurement shows in the send delay, which is
// judged; the remarks name the cause.
func (w *Watch) Remarks() []string {
	var out []string
	if s := w.Stolen(); s >= LeastStolen {
		out = append(out, fmt.Sprintf("the hypervisor gave %.0f%% of this machine's processor time to others: use a machine with fewer other guests, or run several times and compare", s*100))
	}
	if t := w.Throttled(); t > 0 && t.Seconds() >= LeastThrottled*w.last.mono.Seconds() {
		out = append(out, fmt.Sprintf("the container's processor limit slowed the generator for %v: raise the limit, or lower the rate", t.Round(time.Millisecond)))
	}
	return out
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
