package scenario

import (
	"fmt"
	"os"
	"runtime/metrics"
	"sync"
	"time"

	"carronade/units"
)

// memoryEvery is how often the child looks at its memory, and timeEvery how long the script has
// computed.
const (
	memoryEvery = 5 * time.Millisecond
	timeEvery   = 50 * time.Millisecond
)

// grace is the share of the memory limit within which the interpreter is asked to stop. Beyond
// it the process ends at once: the script is in a call that the interpreter cannot stop.
const grace = 0.25

// tooLong is the text of a script that computes for too long.
func tooLong(limit time.Duration) string {
	return fmt.Sprintf("the script computes for more than %s without starting a step or awaiting one", units.FormatDuration(limit))
}

// tooMuch is the text of a script that needs too much memory.
func tooMuch(limit int64) string {
	return fmt.Sprintf("the script needs more than %s of memory", units.FormatSize(limit))
}

// limitHints are the hints of both.
const (
	tooLongHint = "--script-time gives it more time"
	tooMuchHint = "--script-memory gives it more"
)

// watchMemory ends the script when it needs too much memory. It looks at what the runtime has
// from the system, which grows before the memory is touched. So this works on every system, and
// also within a call that the interpreter cannot stop. A limit of the kernel would make the runtime
// crash at any place.
func (h *childHost) watchMemory(limit int64) {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(memoryEvery) {
		metrics.Read(sample)
		switch used := int64(sample[0].Value.Uint64() - sample[1].Value.Uint64()); {
		case float64(used) > float64(limit)*(1+grace):
			os.Exit(childFull)
		case used > limit:
			h.stopper.stop(tooMuch(limit))
		}
	}
}

// watchTime ends the script when it computes for too long.
func (h *childHost) watchTime(limit time.Duration) {
	for range time.Tick(timeEvery) {
		if h.clock.spent() > limit {
			h.stopper.stop(tooLong(limit))
		}
	}
}

// A clock adds up the time for which the script computes. Safe for concurrent use.
type clock struct {
	mu    sync.Mutex
	since time.Time // zero while a request waits
	sum   time.Duration
}

func (c *clock) begin() {
	c.mu.Lock()
	c.since = time.Now()
	c.mu.Unlock()
}

func (c *clock) end() {
	c.mu.Lock()
	if !c.since.IsZero() {
		c.sum += time.Since(c.since)
	}
	c.since = time.Time{}
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
	if c.since.IsZero() {
		return c.sum
	}
	return c.sum + time.Since(c.since)
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
