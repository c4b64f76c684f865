package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// A simPlan is the plan of a simulated run.
type simPlan struct {
	Shape    int           `json:"shape"`
	Seed     uint64        `json:"seed"`
	Rate     float64       `json:"rate"`
	Clients  int           `json:"clients"`
	End      time.Duration `json:"end"`
	Interval time.Duration `json:"interval"`
	Padding  int           `json:"padding"` // bytes of a result besides its numbers
}

// A simShare is the streams of one agent.
type simShare struct {
	From int32 `json:"from"`
	To   int32 `json:"to"`
}

func (p simPlan) schedule() load.Schedule {
	var s load.Schedule
	switch p.Shape {
	case 0:
		s = load.Constant(p.Rate)
	case 1:
		s = load.Ramp(p.Rate/10, p.Rate, p.End)
	case 2:
		s = load.Poisson(p.Rate, p.Seed)
	case 3:
		s = load.Sine(p.Rate, p.Rate/2, 2*time.Second)
	case 4:
		s = load.Burst(uint64(p.Rate/4)+1, 250*time.Millisecond)
	default:
		s = load.Union(load.Constant(p.Rate/20), load.Poisson(p.Rate/20, p.Seed)) // slow to compute
	}
	return load.Until(s, p.End)
}

// A simEvent is one event: the number in the whole run, and when it is due.
type simEvent struct {
	due time.Duration
	n   uint64
}

// events returns the events of the streams [from, to), in the order in which they are due.
func (p simPlan) events(from, to int32) []simEvent {
	s, part := p.schedule(), load.RoundRobin(p.Clients)
	all := s.Count(p.End)
	var events []simEvent
	for stream := from; stream < to; stream++ {
		for k := range part.Before(stream, all) {
			n := part.Event(stream, k)
			events = append(events, simEvent{s.Due(n), n})
		}
	}
	slices.SortFunc(events, func(a, b simEvent) int {
		if a.due != b.due {
			return int(min(max(a.due-b.due, -1), 1))
		}
		return int(int64(a.n) - int64(b.n))
	})
	return events
}

// A simCount is what is counted of an interval, or of a whole run. The response time of an event follows from its number.
type simCount struct {
	Sent   uint64                   `json:"sent"`
	Mixed  uint64                   `json:"mixed"` // of the numbers: another event shows
	Values map[time.Duration]uint64 `json:"values,omitempty"`
}

func (c *simCount) add(e simEvent) {
	if c.Values == nil {
		c.Values = map[time.Duration]uint64{}
	}
	mixed := (e.n + 1) * 0x9e3779b97f4a7c15
	c.Sent++
	c.Mixed += mixed ^ mixed>>29
	c.Values[2*time.Millisecond+time.Duration(mixed>>61)*377*time.Microsecond]++
}

// A simTotal is counts with a histogram, merged.
type simTotal struct {
	sent, mixed uint64
	times       *measure.Histogram
}

func (t *simTotal) add(c simCount) {
	if t.times == nil {
		t.times = measure.NewHistogram()
	}
	one := measure.NewHistogram()
	for v, n := range c.Values {
		one.RecordN(v, n)
	}
	t.sent += c.Sent
	t.mixed += c.Mixed
	t.times.Merge(one)
}

func (t *simTotal) equal(o *simTotal) bool {
	if t.times == nil || o.times == nil {
		return t.sent == o.sent && t.mixed == o.mixed && t.sent == 0
	}
	return t.sent == o.sent && t.mixed == o.mixed && t.times.Equal(o.times)
}

// alone returns what one machine would count, for each interval and for all.
func (p simPlan) alone() (intervals []simTotal, all simTotal) {
	counts := make([]simCount, int((p.End+p.Interval-1)/p.Interval))
	var sum simCount
	for _, e := range p.events(0, int32(p.Clients)) {
		counts[e.due/p.Interval].add(e)
		sum.add(e)
	}
	for _, c := range counts {
		var t simTotal
		t.add(c)
		intervals = append(intervals, t)
	}
	all.add(sum)
	return intervals, all
}

// A simEngine fires the events of one agent. It stands for an engine that runs all the
// time: before anything else happens on its machine, it is brought up to the present.
type simEngine struct {
	m    *simAgent
	run  string
	plan simPlan

	events        []simEvent
	start         time.Duration // on its machine's clock; 0: no order yet
	next          int           // event
	done          time.Duration // up to which intervals are closed, since the start
	now           simCount      // the interval in progress
	sum           simCount
	refused       bool // the lease had ended
	ended, ending bool
	reads         bool          // it fires nothing, and ends when it gets the order
	ordered       time.Duration // true time of an order to end; 0: none
	over          time.Duration // true time of its end

	frames    [][]byte
	result    []byte
	lastFired time.Duration // true time; -1: never
}

// wake returns when something is due, on the machine's clock.
func (e *simEngine) wake() time.Duration {
	if e.start == 0 || e.ended || e.ending {
		return never
	}
	return e.start + e.upTo()
}

// upTo returns when the interval in progress is over, since the start.
func (e *simEngine) upTo() time.Duration {
	if e.reads {
		return e.done + e.plan.Interval
	}
	return min(e.done+e.plan.Interval, e.plan.End)
}

// advance fires what was due up to now, under the lease that was in force until now.
func (e *simEngine) advance(now time.Duration) {
	if e.start == 0 || e.ended || e.ending || now < e.start {
		return
	}
	lease := e.m.agent.LeaseEnd()
	w := e.m.w
	for !e.refused {
		end := e.upTo()
		for e.next < len(e.events) && e.events[e.next].due < end && e.start+e.events[e.next].due <= now {
			ev := e.events[e.next]
			// An event that is due while the process stands still is sent afterwards.
			at := max(e.start+ev.due, e.m.resumed)
			if at > lease {
				e.refused = true
				break
			}
			if at > now {
				break
			}
			e.next++
			e.now.add(ev)
			e.sum.add(ev)
			e.lastFired = e.m.clock.real(at)
			if e.lastFired-e.m.heard > Lease+leaseSlack {
				w.fail("agent %s fired %v after it last heard the operator", e.m.name, e.lastFired-e.m.heard)
			}
		}
		if e.refused || now < e.start+end {
			break
		}
		e.cut(now)
		e.done = end
		if end == e.plan.End && !e.reads {
			e.finish(nil)
			break
		}
	}
	if now > lease && e.next < len(e.events) {
		e.refused = true
	}
}

// cut closes the interval in progress.
func (e *simEngine) cut(now time.Duration) {
	data, _ := json.Marshal(e.now)
	e.frames = append(e.frames, data)
	e.now = simCount{}
	e.m.agent.Frame(now, data)
}

// finish ends the engine after the last answers.
func (e *simEngine) finish(err error) {
	e.ending = true
	m, process := e.m, e.m.process
	m.w.after(time.Duration(m.w.rnd.IntN(300))*time.Millisecond, func() { m.do(process, func(now time.Duration) { e.end(now, err) }) })
}

func (e *simEngine) end(now time.Duration, err error) {
	if e.ended {
		return
	}
	e.ended = true
	e.over = e.m.clock.real(now)
	var result []byte
	if e.start != 0 {
		result, _ = json.Marshal(struct {
			simCount
			Padding []byte `json:"padding"`
		}{e.sum, make([]byte, e.plan.Padding)})
	}
	e.result = result
	e.m.agent.Ended(now, result, err)
}

// command takes an order.
func (e *simEngine) command(now time.Duration, c command) {
	if e.ended {
		return
	}
	w := e.m.w
	switch c.Do {
	case orderStart:
		if c.At <= now {
			w.fail("agent %s had an order to start %v ago", e.m.name, now-c.At)
		}
		e.start = c.At
	case orderStop, orderAbort:
		e.ordered = e.m.clock.real(now)
		if e.start != 0 && !e.ending && now > e.start {
			e.cut(now) // advance has brought it up to now
		}
		e.ending = true
		if c.Do == orderAbort || e.start == 0 {
			e.end(now, nil)
			return
		}
		e.finish(nil)
	}
}

var errOpen = errors.New("the target refuses connections")

// newGoodWorld returns a world of n agents with a good network, in which the run takes
// 10 s, at 100 events/s, and begins at 3 to 5 s.
func newGoodWorld(t *testing.T, n int, change func(*runConfig)) *simGame {
	g := newSimWorld(4, "")
	w := g.simWorld
	w.agents = nil
	w.plan = simPlan{Rate: 100, Clients: 8, End: 10 * time.Second, Interval: time.Second}
	g.profile = "worst" // it may end in any way
	g.config = runConfig{Run: "run", Version: "1", Layout: "hdr", Plan: mustJSON(w.plan), Shares: map[string][]byte{}}
	for i := range n {
		a := &simAgent{simHost: simHost{w: w, clock: w.clock()}, name: fmt.Sprintf("a%d", i), spool: NewMemorySpool(), opens: 100 * time.Millisecond}
		a.up = simLink{base: time.Millisecond, bytes: map[time.Duration]int{}}
		a.down = simLink{base: 2 * time.Millisecond, bytes: map[time.Duration]int{}}
		w.agents = append(w.agents, a)
		a.boot()
		g.config.Agents = append(g.config.Agents, a.name)
		g.config.Shares[a.name] = mustJSON(simShare{int32(i * 8 / n), int32((i + 1) * 8 / n)})
	}
	if change != nil {
		change(&g.config)
	}
	if testing.Verbose() {
		w.log = t.Logf
	}
	return g
}

func (g *simGame) mustPlay(t *testing.T) runOutcome {
	t.Helper()
	g.play()
	for _, e := range g.errs {
		t.Fatal(e)
	}
	return *g.op.outcome
}

func (g *simGame) want(t *testing.T, o runOutcome, s runState, reasons ...string) {
	t.Helper()
	assert.Equal(t, o.State, s, "the run: %q", o.Reasons)
	for _, r := range reasons {
		assert.True(t, slices.ContainsFunc(o.Reasons, func(have string) bool { return strings.Contains(have, r) }),
			"the reasons are %q; want %q", o.Reasons, r)
	}
}

func TestComplete(t *testing.T) {
	g := newGoodWorld(t, 4, nil)
	o := g.mustPlay(t)
	g.want(t, o, stateComplete)
	assert.True(t, len(o.Reasons) == 0 && o.Skew != 0 && o.Skew <= 10*time.Millisecond, "reasons %q, skew %v", o.Reasons, o.Skew)
	for i, a := range o.Agents {
		if a.State != stateComplete || a.Frames != 10 || !a.Result || a.Incarnation != g.agents[i].incarnation() || a.BoundStart == 0 || a.BoundEnd > 10*time.Millisecond || a.MinRTT < 2900*time.Microsecond {
			t.Errorf("%+v", a)
		}
		runs, _ := g.agents[i].spool.Runs()
		assert.True(t, len(runs) == 0, "agent %s still has the runs %q", a.Name, runs)
	}
}

// TestSilent: processes that end or stand still, and the network.
func TestSilent(t *testing.T) {
	const at = 6 * time.Second // 2 s after the start
	for _, tt := range []struct {
		name           string
		spoil          func(*simGame, *simAgent)
		going          bool
		least          int
		state          runState
		reasons        []string
		suspects       int
		until          bool // it is said until when the agent may have fired
		lapsed, result bool
	}{
		{"killed", func(_ *simGame, a *simAgent) { a.kill() }, false, 0, stateAborted, []string{"agent a1: no message came from it for 5"}, 1, true, false, false},
		{"killed, others go on", func(_ *simGame, a *simAgent) { a.kill() }, true, 0, stateMarked, []string{"agent a1: no message came from it for 5"}, 1, true, false, false},
		{"killed, too few go on", func(_ *simGame, a *simAgent) { a.kill() }, true, 3, stateAborted, []string{"agent a1: no message", "2 agents are left: at least 3 are wanted"}, 1, true, false, false},
		{"restarted", func(g *simGame, a *simAgent) {
			a.kill()
			g.after(time.Second, func() { g.reboot(a) })
		}, false, 0, stateAborted, []string{"agent a1: it answers as another process"}, 0, false, false, false},
		{"still for 3 s", func(_ *simGame, a *simAgent) { a.freeze(3 * time.Second) }, false, 0, stateComplete, nil, 1, false, false, true},
		{"still for 8 s", func(_ *simGame, a *simAgent) { a.freeze(8 * time.Second) }, false, 0, stateAborted, []string{"agent a1: no message"}, 1, true, false, false},
		{"still for 5.5 s, others go on", func(_ *simGame, a *simAgent) { a.freeze(5500 * time.Millisecond) }, true, 0, stateMarked, []string{"agent a1: no message"}, 1, true, true, true},
		{"cut off for 3 s", func(g *simGame, a *simAgent) {
			a.up.cutFrom, a.up.cutTo, a.down.cutFrom, a.down.cutTo = at, at+3*time.Second, at, at+3*time.Second
		}, false, 0, stateComplete, nil, 1, false, false, true},
		{"cannot send for 5.3 s", func(_ *simGame, a *simAgent) { a.up.cutFrom, a.up.cutTo = at, at+5300*time.Millisecond }, true, 0, stateMarked, []string{"agent a1: no message"}, 1, true, true, true},
		{"cannot hear for 7 s", func(g *simGame, a *simAgent) { a.down.cutFrom, a.down.cutTo = at, at+7*time.Second }, true, 0, stateMarked, []string{"agent a1: it heard nothing of the operator for 5s"}, 0, false, true, true},
		{"the operator still for 3 s", func(g *simGame, _ *simAgent) { g.op.freeze(3 * time.Second) }, false, 0, stateComplete, nil, 0, false, false, true},
		{"the operator still for 8 s", func(g *simGame, _ *simAgent) { g.op.freeze(8 * time.Second) }, false, 0, stateAborted, []string{"agent a1: it heard nothing of the operator for 5s", "the operator's process did not run for 8"}, 0, false, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGoodWorld(t, 3, func(c *runConfig) { c.KeepGoing, c.MinAgents = tt.going, tt.least })
			a := g.agents[1]
			g.at(at, func() { tt.spoil(g, a) })
			o := g.mustPlay(t)
			g.want(t, o, tt.state, tt.reasons...)
			got := o.Agents[1]
			assert.True(t, got.Suspected == tt.suspects && (got.MayHaveFiredUntil > 0) == tt.until && got.Lapsed == tt.lapsed && got.Result == tt.result,
				"suspected %d times, may have fired until %v, lapsed %v, result %v; want %d, %v, %v, %v", got.Suspected, got.MayHaveFiredUntil, got.Lapsed, got.Result, tt.suspects, tt.until, tt.lapsed, tt.result)
			// The others end within a second of the failure that is seen, 5 s after the last message, or go on to the end.
			for _, other := range []int{0, 2} {
				want := stateComplete
				if tt.state == stateAborted {
					want = stateMarked
					last := g.agents[other].engines[0].lastFired
					assert.True(t, last <= at+6*time.Second, "a%d fired until %v", other, last)
				}
				s := o.Agents[other].State
				assert.True(t, s == want || tt.lapsed, "a%d is %s, want %s", other, s, want)
			}
		})
	}
}

// TestNotStarted: what prevents a start. No agent fires.
func TestNotStarted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		spoil  func(*simGame, *simAgent)
		reason string
	}{
		{"another version", func(_ *simGame, a *simAgent) { a.agent.info.Version = "2" }, "agent a1: it has version 2 of the program, the operator 1"},
		{"another layout", func(_ *simGame, a *simAgent) { a.agent.info.Layout = "log" }, "agent a1: its histograms have the layout log"},
		{"busy", func(g *simGame, a *simAgent) {
			g.at(time.Second, func() { a.agent.run = nil })
			a.agent.run = &agentRun{name: "other", session: "s", phase: phaseStopping, lapsed: true, heard: a.clock.mono(0), nextStatus: never}
		}, "agent a1: it is busy with run other"},
		{"the run is in the spool", func(g *simGame, a *simAgent) { a.spool.(*MemorySpool).runs["run"] = &memoryRun{} }, "agent a1: its spool has run run already"},
		{"it is not there", func(_ *simGame, a *simAgent) { a.kill() }, "agent a1: it does not answer: nothing in 10s"},
		{"it cannot open", func(_ *simGame, a *simAgent) { a.noOpen = true }, "agent a1: the target refuses connections"},
		{"it opens for long", func(_ *simGame, a *simAgent) { a.opens = 70 * time.Second }, "not ready within 1m0s: a1"},
		{"killed while it opens", func(g *simGame, a *simAgent) { g.at(50*time.Millisecond, a.kill) }, "agent a1: no message came from it for 5"},
		{"killed before it confirms", func(g *simGame, a *simAgent) { a.opens = time.Second; g.at(1007*time.Millisecond, a.kill) }, "the start was not confirmed in time: a1"},
		{"its clock is not known well enough", func(_ *simGame, a *simAgent) { a.up.base = 30 * time.Millisecond }, "the clock of agent a1 is known to 1"},
		{"stopped", func(g *simGame, _ *simAgent) {
			g.at(500*time.Millisecond, func() { g.op.step(func(now time.Duration) { g.op.c.Stop(now, "interrupted") }) })
		}, "interrupted"},
		{"stopped after the order to start", func(g *simGame, _ *simAgent) {
			g.at(3*time.Second, func() { g.op.step(func(now time.Duration) { g.op.c.Stop(now, "interrupted") }) })
		}, "interrupted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGoodWorld(t, 3, func(c *runConfig) { c.KeepGoing = true })
			tt.spoil(g, g.agents[1])
			o := g.mustPlay(t)
			g.want(t, o, stateCancelled, tt.reason)
			for _, a := range g.agents {
				assert.True(t, len(a.engines) == 0 || a.engines[0].lastFired < 0, "agent %s fired", a.name)
			}
		})
	}
}

// TestStop: a stop, and a second one.
func TestStop(t *testing.T) {
	for _, second := range []bool{false, true} {
		g := newGoodWorld(t, 2, nil)
		g.at(8*time.Second, func() { g.op.step(func(now time.Duration) { g.op.c.Stop(now, "interrupted") }) })
		want := stateMarked
		if second {
			want = stateAborted
			g.at(8*time.Second+50*time.Millisecond, func() { g.op.step(func(now time.Duration) { g.op.c.Abort(now, "interrupted again") }) })
		}
		o := g.mustPlay(t)
		g.want(t, o, want, "interrupted")
		for i, a := range o.Agents {
			if last := g.agents[i].engines[0].lastFired; !a.Result || a.State != stateMarked || last > 8*time.Second+10*time.Millisecond || last < 7*time.Second {
				t.Errorf("agent %s fired until %v, %+v", a.Name, last, a)
			}
		}
	}
}

// TestRecover: the operator is killed, and another one gets the run from the spools. An
// agent that is killed too has its intervals, but no result.
func TestRecover(t *testing.T) {
	g := newGoodWorld(t, 3, nil)
	g.at(8*time.Second, g.op.kill)
	g.at(9*time.Second, g.agents[2].kill)
	g.recover = 20 * time.Second
	o := g.mustPlay(t)
	g.want(t, o, stateMarked, "recovered", "agent a2: its process ended before its run did", "agent a0: it heard nothing")
	for i, a := range o.Agents {
		e := g.agents[i].engines[0]
		assert.True(t, a.Frames == uint64(len(e.frames)) && a.Frames >= 3 && a.Result == (i < 2),
			"%d of %d frames, %+v", a.Frames, len(e.frames), a)
		assert.True(t, e.lastFired <= 13*time.Second, "agent %s fired until %v, without an operator", a.Name, e.lastFired)
		runs, _ := g.agents[i].spool.Runs()
		assert.True(t, len(runs) == 0, "agent %s still has the runs %q", a.Name, runs)
	}
	// A second time nothing is there.
	g.config.Recover = true
	g.op.boot(g.config)
	g.run(g.now+time.Minute, g.op.c.Done)
	g.run(g.now+time.Minute, g.op.c.Done)
	g.want(t, *g.op.outcome, stateAborted, "agent a0: its spool has no data of run run")
}

// TestDrift: a clock that is too fast moves an agent's intervals.
func TestDrift(t *testing.T) {
	g := newGoodWorld(t, 2, func(c *runConfig) { c.Interval = 100 * time.Millisecond })
	g.plan.End, g.plan.Interval = 100*time.Second, 10*time.Second
	g.config.Plan = mustJSON(g.plan)
	g.op.clock.drift, g.agents[0].clock.drift, g.agents[1].clock.drift = 0, 0, 80e-6
	o := g.mustPlay(t)
	g.want(t, o, stateMarked, "agent a1: its clock and the operator's came apart by 8")
	d := o.Agents[1].Drift
	assert.True(t, d >= 6*time.Millisecond && d <= 10*time.Millisecond, "the drift is %v, want 8 ms", d)
}

func TestConfig(t *testing.T) {
	ok := runConfig{Run: "r", Session: "s", Agents: []string{"a", "b"}}
	assert.Value(newCoordinator(ok))(t)
	for name, change := range map[string]func(*runConfig){
		"no run":         func(c *runConfig) { c.Run = "" },
		"a path":         func(c *runConfig) { c.Run = "a/b" },
		"no session":     func(c *runConfig) { c.Session = "" },
		"no agents":      func(c *runConfig) { c.Agents = nil },
		"the same twice": func(c *runConfig) { c.Agents = []string{"a", "a"} },
		"too many":       func(c *runConfig) { c.MinAgents = 3 },
		"a large plan":   func(c *runConfig) { c.Plan = make([]byte, maxPlan+1) },
		"a short margin": func(c *runConfig) { c.StartMargin = time.Second },
		"a negative":     func(c *runConfig) { c.MaxClockError = -1 },
	} {
		c := ok
		change(&c)
		_, err := newCoordinator(c)
		assert.True(t, err != nil, "%s was taken", name)
	}
}
