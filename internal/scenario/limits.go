package scenario

import (
	"fmt"
	"os"
	"runtime/metrics"
	"sync"
	"time"

	"carronade/internal/host"
	"carronade/units"
)

// memoryEvery is how often the child looks at its memory, and timeEvery how often at the time for
// which the script has computed. It looks at neither while the script waits for a step: that would
// take time from the step, which runs next to it.
const (
	memoryEvery = 5 * time.Millisecond
	timeEvery   = 50 * time.Millisecond
)

// grace is the share of the memory limit within which the interpreter is asked to stop. Beyond
// it the process ends at once: the script is in a call that the interpreter cannot stop.
const grace = 0.25

// stopAfter is the processor time that the interpreter has to stop before the process ends.
const stopAfter = 2 * time.Second

// tooLong is the text of a script that computes for too long.
func tooLong(limit time.Duration) string {
	return fmt.Sprintf("the script computes for more than %s without starting a step or awaiting one", units.FormatDuration(limit))
}

// tooMuch is the text of a script that needs too much memory.
func tooMuch(limit int64) string {
	return fmt.Sprintf("the script needs more than %s of memory", units.FormatSize(limit))
}

// tooSilent is the text of a process that neither asks nor takes an answer.
func tooSilent(limit time.Duration) string {
	return fmt.Sprintf("the process of the script has neither asked nor taken an answer for %s", units.FormatDuration(limit))
}

// The hints of these texts.
const (
	tooLongHint   = "--script-time gives it more time"
	tooMuchHint   = "--script-memory gives it more"
	tooSilentHint = "another program stopped it, or the machine is too busy: --script-time gives it more time"
)

// watchMemory ends the script when it needs too much memory. It looks at what the runtime has
// from the system, which grows before the memory is touched. So this works on every system, and
// also within a call that the interpreter cannot stop. A limit of the kernel would make the runtime
// crash at any place.
func (h *childHost) watchMemory(limit int64) {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for {
		h.clock.awaitRunning()
		time.Sleep(memoryEvery)
		metrics.Read(sample)
		switch used := int64(sample[0].Value.Uint64() - sample[1].Value.Uint64()); {
		case float64(used) > float64(limit)*(1+grace):
			os.Exit(childFull)
		case used > limit:
			h.stopper.stop(tooMuch(limit))
		}
	}
}

// residentEvery is how often the parent looks at the memory of the child, and residentShare the
// share of the limit, above grace, at which it kills it.
const (
	residentEvery = 50 * time.Millisecond
	residentShare = 1.5
)

// watchMemory kills the child when it needs too much memory and did not notice that itself: memory
// that is not of its runtime, or a child whose watcher does not run.
func (p *parent) watchMemory() {
	tick := time.NewTicker(residentEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.child.gone:
			return
		case <-tick.C:
		}
		if float64(host.Resident(p.child.process.Pid())) > residentShare*float64(p.Memory) && p.child.process.State() == nil {
			p.child.full.Store(true)
			p.child.kill()
			return
		}
	}
}

// watchTime ends the script when it computes for too long. It ends the process if the interpreter
// cannot be stopped.
func (h *childHost) watchTime(limit time.Duration) {
	asked := time.Duration(0) // what was spent when the interpreter was first asked to stop
	for {
		h.clock.awaitRunning()
		time.Sleep(timeEvery)
		spent := h.clock.spent()
		if spent <= limit {
			asked = 0
			continue
		}
		if asked == 0 { // this may be late, on a busy machine
			asked = spent
		}
		if spent > asked+stopAfter {
			os.Exit(childLate)
		}
		h.stopper.stop(tooLong(limit))
	}
}

// A clock adds up the processor time for which the script computes: on a busy machine a script
// that did little is not stopped. Where the system does not report processor time, it is the time
// that passes. Safe for concurrent use.
type clock struct {
	now func() time.Duration

	mu      sync.Mutex
	started *sync.Cond // running became true
	running bool       // no request waits
	since   time.Duration
	sum     time.Duration
}

func newClock() *clock {
	c := &clock{now: host.CPU}
	c.started = sync.NewCond(&c.mu)
	if c.now() == 0 {
		start := time.Now()
		c.now = func() time.Duration { return time.Since(start) }
	}
	return c
}

func (c *clock) begin() {
	c.mu.Lock()
	c.running, c.since = true, c.now()
	c.mu.Unlock()
	c.started.Broadcast()
}

// awaitRunning returns when the script computes.
func (c *clock) awaitRunning() {
	c.mu.Lock()
	for !c.running {
		c.started.Wait()
	}
	c.mu.Unlock()
}

func (c *clock) end() {
	c.mu.Lock()
	if c.running {
		c.sum += c.now() - c.since
	}
	c.running = false
	c.mu.Unlock()
}

// reset begins to count from 0: a step was started or awaited.
func (c *clock) reset() {
	c.mu.Lock()
	c.sum = 0
	c.mu.Unlock()
}

func (c *clock) spent() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		return c.sum
	}
	return c.sum + c.now() - c.since
}

// A stopper stops the interpreter. Safe for concurrent use.
type stopper struct {
	mu sync.Mutex
	f  func(text string)
}

func (s *stopper) set(f func(text string)) {
	s.mu.Lock()
	s.f = f
	s.mu.Unlock()
}

func (s *stopper) stop(text string) {
	s.mu.Lock()
	f := s.f
	s.mu.Unlock()
	if f != nil {
		f(text)
	}
}
