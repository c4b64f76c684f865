package system

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
)

// Causes says why this program did not run just now, by what the kernel and Go's
// runtime count. It keeps what they said at several moments: why something took long
// shows in the difference since the newest of them that was before it began. Safe for
// concurrent use.
type Causes struct {
	now       func() time.Duration
	root      fs.FS // nil: no such files here
	asleep    func() time.Duration
	continued func() time.Duration // when the program was last continued by a signal; negative: never
	close     func()
	group     cgroup

	mu   sync.Mutex
	past []evidence // in order of time
}

// An evidence is what counters say at a moment.
type evidence struct {
	at        time.Duration
	asleep    time.Duration            // of the machine
	throttled time.Duration            // of the control group
	steal     uint64                   // ticks
	busy      uint64                   // ticks of all processors
	used      uint64                   // ticks of this program
	faults    uint64                   // that waited for a disk
	waits     map[string]time.Duration // by thread: for how long it could run and did not
	pauses    []uint64                 // for the garbage collector, by bucket
	edges     []float64                // of the buckets
}

const (
	// lookEvery is how old the newest evidence may get. What happened before a freeze
	// counts towards it when it was after the evidence.
	lookEvery = 900 * time.Millisecond
	mostPast  = 16
	// leastAsleep is how far the clocks may be apart because they are not read at the
	// same moment.
	leastAsleep = 10 * time.Millisecond
	// perFault is what a page that is read from a disk takes at least, nearly always.
	perFault = 100 * time.Microsecond
)

// NewCauses begins to look. Close ends it.
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

// Close gives back the signal that is listened to.
func (c *Causes) Close() { c.close() }

// Look keeps what the counters say now, about once a second however often it is
// called.
func (c *Causes) Look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now()-c.past[len(c.past)-1].at >= lookEvery {
		c.keep(c.read())
	}
}

func (c *Causes) keep(e evidence) {
	c.past = append(c.past, e)
	c.past = slices.Delete(c.past, 0, max(0, len(c.past)-mostPast))
}

// Why says why the program, or a thread of it, did not run for so long until just
// now: the first of the causes below whose evidence covers half of it; "" when none
// does.
func (c *Causes) Why(length time.Duration) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	began := c.now() - length
	now := c.read()
	before := &c.past[0]
	for i := range c.past {
		if c.past[i].at <= began {
			before = &c.past[i]
		}
	}
	c.keep(now)
	enough := func(d time.Duration) bool { return d >= length/2 && d > 0 }
	figure := func(d time.Duration) string { return min(d, length).Round(time.Millisecond).String() }
	ticks := func(now, then uint64) time.Duration { return time.Duration(now-min(now, then)) * tick }

	if d := now.asleep - before.asleep; d >= leastAsleep {
		return fmt.Sprintf("the machine was suspended for %v", d.Round(time.Millisecond))
	}
	if at := c.continued(); at >= 0 && at >= began {
		return "stopped and continued"
	}
	if d := now.throttled - before.throttled; enough(d) {
		return "throttled by the container's processor limit for " + figure(d)
	}
	if d := ticks(now.steal, before.steal); enough(d) {
		return fmt.Sprintf("the hypervisor gave the processors to others for %s", figure(d))
	}
	if d := now.waited(before); enough(d) {
		own := ticks(now.used, before.used)
		who := "other processes had the processors"
		if own > ticks(now.busy, before.busy)-own {
			who = "there were too few processors for its own threads"
		}
		return fmt.Sprintf("%s: a thread waited %s for one", who, figure(d))
	}
	if d := now.paused(before); enough(d) {
		return "the garbage collector stopped it for " + figure(d)
	}
	if n := now.faults - min(now.faults, before.faults); enough(time.Duration(min(n, math.MaxInt32)) * perFault) {
		return fmt.Sprintf("its memory was read back from a disk: %d page faults", n)
	}
	return ""
}

// waited is the longest that a thread waited for a processor.
func (e *evidence) waited(before *evidence) (longest time.Duration) {
	for thread, d := range e.waits {
		longest = max(longest, d-before.waits[thread])
	}
	return longest
}

// paused is the longest pause for the garbage collector: the lower edge of the
// runtime's bucket.
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
	var v vitals
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
