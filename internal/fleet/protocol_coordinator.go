package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A runConfig is what a coordinator needs to know of its run.
type runConfig struct {
	Run     string // see validRun
	Session string // a name that no other coordinator of this run ever had, such as a random one
	Version string // of the program, which all agents must have
	Layout  string // of the histograms, which all agents must have

	Plan   []byte            // for all agents, opaque
	Shares map[string][]byte // by agent: what differs, opaque; with Plan at most maxPlan
	Agents []string          // names, different ones
	// Readers are those of the agents that fire nothing, but read what the others send. They
	// end when all others have ended: they get the order to stop then, and not before.
	Readers []string

	// Recover collects an earlier run of the same name from the agents' spools. Nothing
	// is fired; Plan and Shares are not used.
	Recover bool

	KeepGoing     bool          // after a failure the other agents go on
	MinAgents     int           // with KeepGoing: with fewer the run is aborted; 0: one
	MaxClockError time.Duration // 0: 10 ms
	Interval      time.Duration // of frames; clocks must agree to a tenth of it; 0: one second
	StartMargin   time.Duration // from the agreement to T0, in addition to four round trips; 0: 3 s
}

func (cfg *runConfig) check() error {
	cfg.MinAgents = max(cfg.MinAgents, 1)
	for _, d := range []struct {
		at        *time.Duration
		otherwise time.Duration
	}{{&cfg.MaxClockError, 10 * time.Millisecond}, {&cfg.Interval, time.Second}, {&cfg.StartMargin, 3 * time.Second}} {
		if *d.at == 0 {
			*d.at = d.otherwise
		}
	}
	switch {
	case !validRun(cfg.Run):
		return fmt.Errorf("%q cannot be the name of a run", cfg.Run)
	case cfg.Session == "" || len(cfg.Session) > maxName:
		return errors.New("a run needs the name of its session")
	case len(cfg.Agents) == 0:
		return errors.New("a run needs at least one agent")
	case cfg.MinAgents > len(cfg.Agents):
		return fmt.Errorf("the run has %d agents: at least %d cannot stay", len(cfg.Agents), cfg.MinAgents)
	case cfg.MaxClockError < 0 || cfg.Interval < 0:
		return errors.New("times must not be negative")
	case len(cfg.Readers) > 0 && !slices.ContainsFunc(cfg.Agents, func(name string) bool { return !slices.Contains(cfg.Readers, name) }):
		return errors.New("all agents of the run read: at least one has to send")
	case cfg.StartMargin < 2*confirmAhead:
		return fmt.Errorf("%v are too short from the agreement to the start: at least %v", cfg.StartMargin, 2*confirmAhead)
	}
	seen := map[string]bool{}
	for _, name := range cfg.Agents {
		if name == "" || len(name) > maxName || seen[name] {
			return fmt.Errorf("the agent %q is listed twice, or has no valid name", name)
		}
		seen[name] = true
		if n := len(cfg.Plan) + len(cfg.Shares[name]); n > maxPlan && !cfg.Recover {
			return fmt.Errorf("the plan for agent %s takes %d bytes: at most %d", name, n, maxPlan)
		}
	}
	return nil
}

// A coordinator is the operator's side of one run. It is not safe for concurrent use:
// one goroutine calls its methods, with times of one monotonic clock. After each call it
// takes what Take returns, and calls Tick at the latest at Next.
type coordinator struct {
	cfg     runConfig
	members []*member
	byName  map[string]*member

	now     time.Duration
	begun   time.Duration // the first call
	called  bool
	grace   time.Duration // silence before this was that of this process
	want    want
	reason  string // of want
	since   time.Duration
	ready   time.Duration // when all agents were
	armed   bool          // T0 is chosen
	gone    bool          // an order to start was sent: agents may fire from T0 on
	t0      time.Duration
	skew    time.Duration
	asked   bool // for the clocks at T0
	started bool // how far apart the starts were is known
	aborted bool // a failure, or the operator, ended the run
	reasons []string

	closed   uint64 // intervals
	finished bool
	released time.Duration // when Release was called; 0: not yet
	done     bool

	send   []addressed
	events []event
	next   time.Duration
}

// newCoordinator returns the coordinator of one run. It fails if the configuration
// cannot work.
func newCoordinator(cfg runConfig) (*coordinator, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &coordinator{cfg: cfg, byName: map[string]*member{}, want: wantOpen}
	for _, name := range cfg.Agents {
		m := &member{name: name, reads: slices.Contains(cfg.Readers, name), burst: firstExchanges}
		c.members = append(c.members, m)
		c.byName[name] = m
	}
	return c, nil
}

// Take returns what has to be sent, and what happened, since the last call.
func (c *coordinator) Take() ([]addressed, []event) {
	send, events := c.send, c.events
	c.send, c.events = nil, nil
	return send, events
}

// Next returns when Tick is due.
func (c *coordinator) Next() time.Duration {
	if c.done {
		return never
	}
	return c.next
}

// Done reports whether nothing is left to do: after Release, once the agents have
// confirmed it or releaseTries are over.
func (c *coordinator) Done() bool { return c.done }

// Tick does what is due.
func (c *coordinator) Tick(now time.Duration) {
	c.at(now)
	c.advance()
}

// Stop ends the run in order: agents fire nothing more, and their reports are
// collected. Before the start it cancels the run.
func (c *coordinator) Stop(now time.Duration, reason string) {
	c.at(now)
	switch {
	case c.finished || c.allEnded():
	case !c.gone:
		c.cancel(reason)
	default:
		c.because(reason)
		c.order(wantStop, reason)
	}
	c.advance()
}

// Abort ends the run at once, without waiting for answers. What agents have is still
// collected, for abortWithin.
func (c *coordinator) Abort(now time.Duration, reason string) {
	c.at(now)
	switch {
	case c.finished:
	case !c.gone:
		c.cancel(reason)
	default:
		c.abort(wantAbort, reason)
	}
	c.advance()
}

// Release follows runFinished, once the caller has stored what it got: agents whose report
// is here remove it from their spools.
func (c *coordinator) Release(now time.Duration) {
	c.at(now)
	if c.finished && c.released == 0 {
		c.released = max(c.now, 1)
		for _, m := range c.members {
			m.beatDue = m.loaded && m.collected
		}
	}
	c.advance()
}

// at begins every call. If this process did not run for a while, the silence of the
// others was its own.
func (c *coordinator) at(now time.Duration) {
	if !c.called {
		c.called, c.begun, c.now = true, now, now
		c.next = now
	}
	if now-max(c.now, c.next) > time.Second {
		c.grace = now
		if now-c.now > Lease && c.gone && !c.finished {
			c.because(fmt.Sprintf("the operator's process did not run for %v", (now - c.now).Round(100*time.Millisecond)))
		}
	}
	c.now = max(c.now, now)
}

// because adds a reason, once.
func (c *coordinator) because(reason string) {
	if !slices.Contains(c.reasons, reason) {
		c.reasons = append(c.reasons, reason)
	}
}

// order wants something of all agents.
func (c *coordinator) order(w want, reason string) {
	if wantOrder[w] <= wantOrder[c.want] {
		return
	}
	c.want, c.reason, c.since = w, reason, c.now
	for _, m := range c.members {
		m.beatDue = true
	}
}

// cancel ends a run in which no agent had the order to fire.
func (c *coordinator) cancel(reason string) {
	c.because(reason)
	c.order(wantAbort, reason)
}

// abort ends a run that has begun.
func (c *coordinator) abort(w want, reason string) {
	c.aborted = true
	c.because(reason)
	c.order(w, reason)
}

// fail takes an agent out of the run; lost says that nothing more is expected of it.
func (c *coordinator) fail(m *member, lost bool, err error) {
	m.lost = m.lost || lost
	if m.err != "" || c.finished {
		return
	}
	m.err = err.Error()
	m.beatDue = true
	c.events = append(c.events, agentFailed{Agent: m.name, Err: err})
	c.failure("agent " + m.name + ": " + m.err)
}

// failure decides what the failure of an agent means for the others.
func (c *coordinator) failure(reason string) {
	left := 0
	for _, m := range c.members {
		if !m.lost && m.err == "" {
			left++
		}
	}
	switch {
	case c.cfg.Recover:
		c.because(reason)
	case !c.gone:
		c.cancel(reason)
	case c.cfg.KeepGoing && left >= c.cfg.MinAgents:
		c.because(reason)
	case c.cfg.KeepGoing && c.cfg.MinAgents > 1:
		c.because(reason)
		c.abort(wantStop, fmt.Sprintf("%d agents are left: at least %d are wanted", left, c.cfg.MinAgents))
	default:
		c.abort(wantStop, reason)
	}
}

// allEnded reports whether no engine runs any more, as far as is known.
func (c *coordinator) allEnded() bool {
	return !slices.ContainsFunc(c.members, func(m *member) bool { return !m.lost && m.phase != phaseEnded })
}

// sendersEnded reports whether only agents that read are left.
func (c *coordinator) sendersEnded() bool {
	return !slices.ContainsFunc(c.members, func(m *member) bool { return !m.reads && !m.lost && m.phase != phaseEnded })
}

// names joins the names of the members for which f holds.
func (c *coordinator) names(f func(*member) bool) string {
	var all []string
	for _, m := range c.members {
		if f(m) {
			all = append(all, m.name)
		}
	}
	return strings.Join(all, ", ")
}
