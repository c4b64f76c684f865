package run

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/report"
	"carronade/load"
)

// A draining pauses the readers of a run until a backlog waits, and ends the run when they have drained it. A nil
// one does nothing.
type draining struct {
	readers  readers
	run      *load.Run
	interval time.Duration
	ends     bool // a backlog that is drained ends the run
	log      func(format string, args ...any)
	changed  func(state string, took time.Duration) // see Job.Backlog; nil: nothing

	over atomic.Bool // what waits is not read any more
	stop chan struct{}
	done chan struct{}

	mu      sync.Mutex
	backlog *backlog
}

// watchBacklog is how often the state machine looks: times of a backlog are known as exactly.
const watchBacklog = 10 * time.Millisecond

// newDraining returns nil if the run builds no backlog.
func (e *execution) newDraining(plan *load.Plan, all readers) (*draining, error) {
	wanted := e.Workload.Backlog()
	if wanted == nil || len(all) == 0 {
		return nil, nil
	}
	without := *plan
	without.Ends = false
	c := &draining{readers: all, interval: plan.Interval, ends: without.Endless(), log: e.Logf, changed: e.Backlog, stop: make(chan struct{}), done: make(chan struct{})}
	var names []string
	for _, b := range c.readers {
		if b.src.Capabilities().Pause == nil {
			return nil, errors.New("--backlog: the reader of this target cannot pause")
		}
		b.pair.Counting(e.Workload.Trace() == "" && e.Rows == nil)
		b.draining = c
		names = append(names, b.name)
	}
	c.backlog = newBacklog(wanted, names)
	plan.Lag = c.lag
	return c, nil
}

// begin is called before the run starts. Without a warm-up its readers begin in a pause.
func (c *draining) begin(r *load.Run, plan *load.Plan) {
	if c == nil {
		return
	}
	c.run = r
	if plan.WarmupTime == 0 && plan.WarmupEvents == 0 {
		c.step(0, &backlogSample{measuring: true, read: make([]amount, len(c.readers))})
	}
}

// watch looks at the backlog until end is called.
func (c *draining) watch() {
	if c == nil {
		return
	}
	go func() {
		defer close(c.done)
		tick := time.NewTicker(watchBacklog)
		defer tick.Stop()
		for {
			select {
			case <-c.stop:
				return
			case <-tick.C:
				c.look()
			}
		}
	}()
}

// end ends the watching. What was given up still waits then.
func (c *draining) end() {
	if c == nil {
		return
	}
	close(c.stop)
	<-c.done
	c.look()
}

func (c *draining) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := backlogSample{measuring: c.run.Stopping() == "" && c.run.Measuring()}
	for _, b := range c.readers {
		acked, read := b.pair.Counts()
		s.acked = amount{acked.Events, acked.Bytes}
		s.read = append(s.read, amount{read.Events, read.Bytes})
	}
	now := c.run.Now()
	c.step(now, &s)
	for n := len(c.backlog.points); now >= time.Duration(n+1)*c.interval; n++ {
		c.backlog.points = append(c.backlog.points, int64(c.backlog.slowest().waits.events)) //nolint:gosec // of events that were sent
	}
}

// step takes a step, does what it asks for, and says which state begins with it.
func (c *draining) step(at time.Duration, s *backlogSample) {
	b := c.backlog
	was := b.state
	c.do(b.step(at, s))
	if b.state == was || c.changed == nil {
		return
	}
	took := at // waiting
	switch was {
	case report.BacklogBuilding:
		took -= b.buildAt
	case report.BacklogDraining:
		took -= b.drainAt
	}
	c.changed(b.state, took)
}

// do does what a step asks for.
func (c *draining) do(a backlogAction) {
	switch sends := c.backlog.stopped < 0; a {
	case pauseReaders, resumeReaders:
		for _, b := range c.readers {
			b.src.Capabilities().Pause(a == pauseReaders)
		}
	case endDrained:
		if sends && c.ends {
			c.run.Stop(load.ByDrain)
		}
	case endUndrained:
		c.over.Store(true)
		if sends {
			c.run.Stop(load.ByBacklog)
		}
	case goOn:
	}
}

// lag implements load.Plan.Lag.
func (c *draining) lag(at time.Duration) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := int(at/c.interval) - 1; at%c.interval == 0 && i >= 0 && i < len(c.backlog.points) {
		return c.backlog.points[i]
	}
	return int64(c.backlog.slowest().waits.events) //nolint:gosec // of events that were sent
}

// sent notes that nothing more is sent. If the plan's own limits ended that, the backlog is drained
// nevertheless; otherwise what waits is not read any more.
func (c *draining) sent(ctx context.Context) {
	if c == nil {
		return
	}
	c.look()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.backlog.stopped = c.run.Now()
	if why := c.run.Stopping(); ctx.Err() != nil || why != "" && why != load.ByDrain {
		if c.backlog.doneAt < 0 {
			c.backlog.over = true
			c.over.Store(true)
		}
		return
	}
	if c.backlog.state == report.BacklogDraining {
		c.log("nothing more is sent; %s", c.backlog.text(c.backlog.stopped))
	}
}

// givesUp reports whether what waits is not read any more.
func (c *draining) givesUp() bool { return c != nil && c.over.Load() }

// progress is the stage of the backlog, and what the run does with it; "" and "": nothing.
func (c *draining) progress(at time.Duration) (stage, text string) {
	if c == nil {
		return "", ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if text = c.backlog.text(at); text != "" {
		stage = c.backlog.state
	}
	return stage, text
}

// report adds the backlog to the outcome of a run.
func (c *draining) report(out *outcome) {
	if c == nil {
		return
	}
	out.backlog = c.backlog.report()
	if text, failed := out.backlog.Failure(); failed {
		out.checks = append(out.checks, report.Check{Name: "backlog", Text: text})
	}
}
