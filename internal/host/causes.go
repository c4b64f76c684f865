package host

import (
	"fmt"
	"io/fs"
	"math"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"carronade/units"
)

// Causes finds out why this program did not run just now, from counters of the
// kernel and of Go's runtime. It keeps their values at several moments: the
// cause of a freeze shows in the difference to the newest values from before
// it. Safe for concurrent use.
type Causes struct {
	now       func() time.Duration
	root      fs.FS // nil: no such files here
	asleep    func() time.Duration
	continued func() time.Duration // when a signal last continued the program; negative: never
	close     func()
	group     cgroup

	mu   sync.Mutex
	past []evidence // in order of time
}

// An evidence has the values of the counters at one moment.
type evidence struct {
	at        time.Duration
	asleep    time.Duration            // of the machine
	throttled time.Duration            // of the control group
	steal     uint64                   // ticks
	busy      uint64                   // ticks of all processors
	used      uint64                   // ticks of this program
	faults    uint64                   // page faults that waited for a disk
	waits     map[string]time.Duration // by thread: how long it waited for a processor
	pauses    []uint64                 // for the garbage collector, by bucket
	edges     []float64                // of the buckets
}

const (
	// lookInterval is the maximum age of the newest evidence. What happened
	// after it and before a freeze is attributed to the freeze.
	lookInterval = 900 * time.Millisecond
	maxPast      = 16
	// minBaseline is the least time from which the usual rate is computed.
	minBaseline = 250 * time.Millisecond
	// leastAsleep is how much the clocks may differ because they are not read
	// at the same moment.
	leastAsleep = 10 * time.Millisecond
	// perFault is the time that reading a page from a disk takes at least, in
	// nearly all cases.
	perFault = 100 * time.Microsecond
)

// NewCauses begins to watch. Close ends it.
func NewCauses() *Causes {
	start := time.Now()
	now := func() time.Duration { return time.Since(start) }
	c := newCauses(now, hostRoot())
	c.asleep = asleep
	c.continued, c.close = watchContinued(now)
	c.past = []evidence{c.read()}
	return c
}

func newCauses(now func() time.Duration, root fs.FS) *Causes {
	c := &Causes{
		now: now, root: root, close: func() {},
		asleep: func() time.Duration { return 0 }, continued: func() time.Duration { return -1 },
	}
	if root != nil {
		c.group = findCgroup(root)
	}
	c.past = []evidence{c.read()}
	return c
}

// Close stops listening to the signal.
func (c *Causes) Close() { c.close() }

// Look keeps the current values of the counters, at most about once a second.
func (c *Causes) Look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now()-c.past[len(c.past)-1].at >= lookInterval {
		c.keep(c.read())
	}
}

func (c *Causes) keep(e evidence) {
	c.past = append(c.past, e)
	c.past = slices.Delete(c.past, 0, max(0, len(c.past)-maxPast))
}

// CountsWaits reports whether the kernel counts how long threads wait for a
// processor. A kernel that is built without CONFIG_SCHED_INFO does not. On
// other systems the result is true, because the counters are not used there.
func (c *Causes) CountsWaits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.root == nil || len(c.past[len(c.past)-1].waits) > 0
}

// Why returns why the program, or one of its threads, did not run for that long
// until just now: the first of the causes below whose evidence covers half of
// it; "" if there is none.
func (c *Causes) Why(length time.Duration) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.read()
	s := c.since(&now, length)
	before, began := s.before, now.at-length
	enough := func(d time.Duration) bool { return d >= length/2 && d > 0 }
	figure := func(d time.Duration) string { return units.FormatDuration(min(d, length).Round(time.Millisecond)) }
	ticks := func(n uint64) time.Duration { return time.Duration(n) * tick }

	if d := now.asleep - before.asleep; d >= leastAsleep {
		return "the machine was suspended for " + units.FormatDuration(d.Round(time.Millisecond))
	}
	if at := c.continued(); at >= 0 && at >= began {
		return "stopped and continued"
	}
	if d := now.throttled - before.throttled; enough(d) {
		return "throttled by the container's processor limit for " + figure(d)
	}
	if d := s.attributable(func(e *evidence) (time.Duration, bool) { return ticks(e.steal), true }); enough(d) {
		return fmt.Sprintf("the hypervisor ran other guests for %s", figure(d))
	}
	if d := s.waited(); enough(d) {
		own, all := now.used-min(now.used, before.used), now.busy-min(now.busy, before.busy)
		who := "other processes used the processors"
		if 2*own > all {
			who = "there were too few processors for its own threads"
		}
		return fmt.Sprintf("%s: a thread waited %s for one", who, figure(d))
	}
	if d := now.paused(before); enough(d) {
		return "the garbage collector stopped it for " + figure(d)
	}
	if d := s.attributable(func(e *evidence) (time.Duration, bool) {
		return time.Duration(min(e.faults, math.MaxInt32)) * perFault, true
	}); enough(d) {
		return fmt.Sprintf("its memory was paged in from disk: %d page faults", d/perFault)
	}
	return ""
}

// A span is the time that the evidence of a freeze covers: from the newest look
// before it to the moment after it.
type span struct {
	length   time.Duration // of the freeze
	now      *evidence
	before   *evidence
	baseline *evidence // an older look, for the usual rate; nil: none
}

// since finds the span of a freeze that has just ended, and keeps the current
// evidence.
func (c *Causes) since(now *evidence, length time.Duration) span {
	s := span{length: length, now: now}
	past := slices.Clone(c.past)
	s.before = &past[0]
	for i := range past {
		if past[i].at <= now.at-length {
			s.before = &past[i]
		}
	}
	for i := range past {
		if past[i].at <= s.before.at-minBaseline {
			s.baseline = &past[i]
		}
	}
	c.keep(*now)
	return s
}

// attributable returns how much of a counted time belongs to the freeze. Part
// of the span is before the freeze. If the span is much longer than the freeze,
// twice the usual rate is subtracted for the rest; if the usual rate is
// unknown, the time is assumed to be spread evenly.
func (s *span) attributable(count func(e *evidence) (d time.Duration, known bool)) time.Duration {
	now, _ := count(s.now)
	before, _ := count(s.before)
	d, whole := now-before, s.now.at-s.before.at
	rest := whole - s.length
	if rest <= 2*s.length {
		return d
	}
	if s.baseline != nil {
		if older, known := count(s.baseline); known {
			rate := float64(before-older) / float64(s.before.at-s.baseline.at)
			return d - time.Duration(2*rate*float64(rest))
		}
	}
	return time.Duration(float64(d) * float64(s.length) / float64(whole))
}

// waited returns the longest time that a thread waited for a processor.
func (s *span) waited() (longest time.Duration) {
	for thread := range s.now.waits {
		longest = max(longest, s.attributable(func(e *evidence) (time.Duration, bool) {
			d, known := e.waits[thread]
			return d, known
		}))
	}
	return longest
}

// paused returns the longest pause of the garbage collector: the lower edge of
// the runtime's bucket.
func (e *evidence) paused(before *evidence) time.Duration {
	for i := len(e.pauses) - 1; i >= 0; i-- {
		if i >= len(before.pauses) || e.pauses[i] > before.pauses[i] {
			return duration(e.edges[i])
		}
	}
	return 0
}

// read reads all counters.
func (c *Causes) read() evidence {
	e := evidence{at: c.now(), asleep: c.asleep()}
	pauses := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(pauses)
	if h := histogram(pauses[0]); h != nil {
		e.pauses, e.edges = h.Counts, h.Buckets
	}
	if c.root == nil {
		return e
	}
	e.throttled = time.Duration(min(c.group.throttled(c.root), math.MaxInt64))
	var v hostCounters
	v.parseCPU([]byte(text(c.root, "proc/stat")))
	e.steal, e.busy = v.steal, v.busy
	if s, ok := parseStat([]byte(text(c.root, "proc/self/stat"))); ok {
		e.faults, e.used = s.faults, s.user+s.sys
	}
	threads, err := fs.ReadDir(c.root, "proc/self/task")
	if err != nil {
		return e
	}
	e.waits = make(map[string]time.Duration, len(threads))
	for _, t := range threads {
		_, waited, _ := strings.Cut(text(c.root, "proc/self/task/"+t.Name()+"/schedstat"), " ")
		waited, _, _ = strings.Cut(waited, " ")
		if n, err := strconv.ParseUint(waited, 10, 63); err == nil {
			e.waits[t.Name()] = time.Duration(n)
		}
	}
	return e
}
