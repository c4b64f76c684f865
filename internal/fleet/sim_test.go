package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestFleet runs agents and an operator in simulated worlds, one for each seed: with a good network, with a bad one, and with
// partitions and processes that are stopped or killed. A run that ends as complete has the numbers of one machine, bit for bit;
// any other has reasons. CARRONADE_TEST_FLEET=n runs n worlds, as make soak does; CARRONADE_TEST_FLEET_SEED=n only the n-th, with
// what happens in it.
func TestFleet(t *testing.T) {
	testkit.Need(t, "some seconds")
	worlds := uint64(300)
	if n, err := strconv.ParseUint(os.Getenv("CARRONADE_TEST_FLEET"), 10, 64); err == nil {
		worlds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("CARRONADE_TEST_FLEET_SEED"), 10, 64); err == nil {
		w := newSimWorld(n, t.TempDir())
		w.log = t.Logf
		w.play()
		t.Logf("%s\n%+v", w.story, w.op.outcome)
		for _, e := range w.errs {
			t.Error(e)
		}
		return
	}
	var next, failed atomic.Uint64
	var mu sync.Mutex
	ends := map[string]int{}
	var wg sync.WaitGroup
	dir := t.TempDir()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				seed := next.Add(1) - 1
				if seed >= worlds || failed.Load() > 5 {
					return
				}
				w := newSimWorld(seed, filepath.Join(dir, strconv.FormatUint(seed, 10)))
				w.play()
				end := "no end"
				if w.op.outcome != nil {
					end = string(w.op.outcome.State)
				}
				mu.Lock()
				ends[w.profile+": "+end]++
				if len(w.errs) > 0 {
					failed.Add(1)
					t.Errorf("seed %d (%s): %s\nrerun: CARRONADE_TEST_FLEET_SEED=%d go test -v -run '^TestFleet$' ./internal/fleet", seed, w.story, w.errs[0], seed)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Log(ends)
	if worlds < 100 || t.Failed() {
		return
	}
	for _, want := range []string{"good: complete", "bad: complete", "worst: complete", "worst: marked", "worst: aborted", "worst: cancelled"} {
		assert.True(t, ends[want] != 0, "no world ended as %q: %v", want, ends)
	}
}

// TestFleetRepeats: a seed is a world, which is the same each time.
func TestFleetRepeats(t *testing.T) {
	testkit.Need(t, "some seconds")
	for seed := range uint64(24) {
		var logs [2]strings.Builder
		for i := range logs {
			w := newSimWorld(seed, t.TempDir())
			w.log = func(format string, args ...any) { fmt.Fprintf(&logs[i], format+"\n", args...) }
			w.play()
		}
		a, b := logs[0].String(), logs[1].String()
		assert.True(t, a == b && a != "", "seed %d is two worlds:\n%s\n\n%s", seed, a, b)
	}
}

// A simStory is what makes a world bad.
type simStory struct {
	profile string
	config  runConfig
	story   string
	recover time.Duration
	froze   bool // the operator stands still, and nothing else happens
}

type simGame struct {
	*simWorld
	simStory
}

// newSimWorld makes the world of a seed.
func newSimWorld(seed uint64, dir string) *simGame {
	rnd := rand.New(rand.NewPCG(seed, 0xf1ee7))
	w := &simWorld{rnd: rnd}
	g := &simGame{simWorld: w}
	n := 1 + rnd.IntN(8)
	if rnd.IntN(2) == 0 {
		n = 1 + rnd.IntN(3)
	}
	w.plan = simPlan{
		Shape: rnd.IntN(6), Seed: rnd.Uint64(), Rate: 40 + rnd.Float64()*400, Clients: n + rnd.IntN(20),
		End: time.Duration(2000+rnd.IntN(3000)*int(1+3*(seed>>1%2))) * time.Millisecond, Interval: time.Second,
	}
	if rnd.IntN(8) == 0 {
		w.plan.Padding = rnd.IntN(1 << 20)
	}
	g.config = runConfig{
		Run: fmt.Sprintf("run%d", seed), Version: "1", Layout: "hdr", Shares: map[string][]byte{},
		MaxClockError: 100 * time.Millisecond, Interval: w.plan.Interval, KeepGoing: rnd.IntN(2) == 0, MinAgents: 1 + rnd.IntN(n),
	}
	if rnd.IntN(10) == 0 {
		g.config.MaxClockError = 10 * time.Millisecond
	}
	g.config.Plan = mustJSON(w.plan)
	senders := n
	if n > 1 && seed%3 == 1 {
		senders--
	}
	for i := range n {
		a := &simAgent{simHost: simHost{w: w, clock: w.clock()}, name: fmt.Sprintf("a%d", i), spool: NewMemorySpool()}
		a.up.bytes, a.down.bytes = map[time.Duration]int{}, map[time.Duration]int{}
		a.up.base = time.Duration(rnd.Int64N(int64(20 * time.Millisecond)))
		a.down.base = time.Duration(rnd.Int64N(int64(20 * time.Millisecond)))
		a.opens = time.Duration(rnd.Int64N(int64(3 * time.Second)))
		if seed%16 == 3 || seed%32 == 0 { // real files
			a.reopen = reopening(w, filepath.Join(dir, a.name))
		}
		w.agents = append(w.agents, a)
		from, to := int32(i*w.plan.Clients/senders), int32((i+1)*w.plan.Clients/senders)
		if i == senders { // the last one reads
			from, to = 0, 0
			g.config.Readers = []string{a.name}
		}
		g.config.Agents = append(g.config.Agents, a.name)
		g.config.Shares[a.name] = mustJSON(simShare{from, to})
	}
	w.op = &simOperator{simHost: simHost{w: w, clock: w.clock()}}
	g.profile = []string{"good", "bad", "worst", "worst"}[seed%4]
	if g.profile != "good" {
		w.faults = simFaults{rnd.Float64() * 0.1, rnd.Float64() * 0.1, time.Duration(rnd.Int64N(int64(60*time.Millisecond))) + 1}
	}
	for _, a := range w.agents {
		a.boot()
		if a.reopen != nil {
			a.killed = func() { a.spool.(*FileSpool).Close() }
		}
	}
	if g.profile == "worst" {
		g.spoil()
	}
	g.story = fmt.Sprintf("%s, %d agents (%d send), shape %d for %v, keep going %v with %d, faults %+v%s",
		g.profile, n, senders, w.plan.Shape, w.plan.End, g.config.KeepGoing, g.config.MinAgents, w.faults, g.story)
	return g
}

func reopening(w *simWorld, dir string) func() Spool {
	return func() Spool {
		s, err := OpenSpool(dir)
		if err != nil {
			w.fail("%v", err)
		}
		return s
	}
}

// spoil adds disasters.
func (g *simGame) spoil() {
	rnd, w := g.rnd, g.simWorld
	span := int64(g.plan.End + 8*time.Second)
	when := func() time.Duration { return time.Duration(rnd.Int64N(span)) }
	disasters := rnd.IntN(4)
	tell := func(format string, args ...any) { g.story += "; " + fmt.Sprintf(format, args...) }
	for range disasters {
		a := w.agents[rnd.IntN(len(w.agents))]
		at, long := when(), time.Duration(rnd.Int64N(int64(12*time.Second)))
		switch rnd.IntN(9) {
		case 0:
			tell("%s stands still for %v at %v", a.name, long, at)
			w.at(at, func() { a.step(func(time.Duration) {}); a.freeze(long) })
		case 1:
			tell("%s is killed at %v and comes back after %v", a.name, at, long)
			w.at(at, a.kill)
			w.at(at+long, func() { g.reboot(a) })
		case 2:
			a.life = 1 + rnd.IntN(300)
			tell("%s is killed after %d messages and comes back", a.name, a.life)
			w.at(at+20*time.Second, func() { g.reboot(a) })
		case 3:
			up, down := rnd.IntN(3) > 0, rnd.IntN(3) > 0
			tell("%s is cut off for %v at %v (up %v, down %v)", a.name, long, at, up, down)
			if up {
				a.up.cutFrom, a.up.cutTo = at, at+long
			}
			if down {
				a.down.cutFrom, a.down.cutTo = at, at+long
			}
		case 4:
			tell("the operator stands still for %v at %v", long, at)
			g.froze = disasters == 1
			w.at(at, func() { w.op.freeze(long) })
		case 5:
			g.recover = at + time.Duration(rnd.Int64N(int64(15*time.Second)))
			if rnd.IntN(2) == 0 {
				tell("the operator is killed at %v", at)
				w.at(at, w.op.kill)
			} else {
				w.op.life = 1 + rnd.IntN(1000)
				g.recover += 40 * time.Second
				tell("the operator is killed after %d messages", w.op.life)
			}
			tell("and another one recovers the run at %v", g.recover)
		case 6:
			tell("the operator stops at %v", at)
			w.at(at, func() { w.op.step(func(now time.Duration) { w.op.c.Stop(now, "stopped") }) })
			if rnd.IntN(2) == 0 {
				w.at(at+long/4, func() { w.op.step(func(now time.Duration) { w.op.c.Abort(now, "aborted") }) })
			}
		case 7:
			if rnd.IntN(3) > 0 {
				a.fails = at
				tell("the engine of %s fails after %v", a.name, at)
			} else if a.noOpen = rnd.IntN(2) == 0; a.noOpen {
				tell("%s cannot open", a.name)
			} else {
				a.opens = 70 * time.Second
				tell("%s takes long to open", a.name)
			}
		case 8:
			if m, ok := a.spool.(*MemorySpool); ok && a.reopen == nil {
				left := rnd.IntN(12)
				a.spool = &failingSpool{m, left}
				a.agent.spool = a.spool
				tell("the spool of %s fails after %d records", a.name, left)
			}
		}
	}
}

// A failingSpool is full after some records.
type failingSpool struct {
	*MemorySpool
	left int
}

func (s *failingSpool) Append(run string, data []byte) (uint64, error) {
	if s.left--; s.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return s.MemorySpool.Append(run, data)
}

func (g *simGame) reboot(a *simAgent) {
	if !a.alive && a.process > 0 {
		a.boot()
	}
}

// play runs the world and checks everything.
func (g *simGame) play() {
	w := g.simWorld
	w.op.boot(g.config)
	over := func() bool { return w.op.alive && w.op.c.Done() }
	w.run(150*time.Second, over)
	if !w.op.alive {
		w.run(max(g.recover, w.now), func() bool { return false })
		for _, a := range w.agents {
			g.reboot(a)
		}
		cfg := g.config
		cfg.Recover = true
		w.op.life = 0
		w.op.boot(cfg)
		w.run(w.now+200*time.Second, over)
	}
	if len(w.errs) > 0 {
		return
	}
	if !over() {
		w.fail("the run does not end: want %s, %s", w.op.c.want, w.op.c.names(func(m *member) bool { return !m.lost && !m.collected }))
		return
	}
	g.check()
	// Whatever happened, no agent stays busy.
	w.run(w.now+30*time.Second, func() bool { return false })
	for _, a := range w.agents {
		if a.alive && !a.frozen && a.agent.Run() != "" {
			w.fail("agent %s stays busy with run %s", a.name, a.agent.Run())
		}
	}
}

// check compares what the operator says with what happened.
func (g *simGame) check() {
	w, o := g.simWorld, g.op.outcome
	if o == nil {
		w.fail("no outcome")
		return
	}
	if o.State != stateComplete && len(o.Reasons) == 0 {
		w.fail("%s without a reason", o.State)
	}
	if g.profile != "worst" && o.State != stateComplete && g.config.MaxClockError > 10*time.Millisecond {
		w.fail("%s without cause: %q", o.State, o.Reasons)
	}
	if o.State == stateComplete && len(o.Agents) != len(w.agents) {
		w.fail("complete with %d of %d agents", len(o.Agents), len(w.agents))
	}
	for agent := range w.op.failed {
		if !slices.ContainsFunc(o.Reasons, func(r string) bool { return strings.Contains(r, "agent "+agent+":") }) {
			w.fail("agent %s failed, and the reasons are %q", agent, o.Reasons)
		}
	}
	intervals, alone := w.plan.alone()
	var all simTotal
	frames := make([]simTotal, len(intervals))
	for i, a := range w.agents {
		if len(a.engines) > 1 {
			w.fail("agent %s started %d engines", a.name, len(a.engines))
			return
		}
		var e *simEngine
		if len(a.engines) == 1 {
			e = a.engines[0]
		}
		g.checkClock(a, &o.Agents[i])
		g.checkAgent(a, e, &o.Agents[i], frames, &all)
		for second, n := range a.up.bytes {
			if n += a.down.bytes[second]; n > 20<<10 {
				w.fail("%d bytes of control traffic with %s in second %d", n, a.name, second)
			}
		}
	}
	if o.State == stateComplete {
		if !all.equal(&alone) {
			w.fail("complete, but the results have %d events; one machine: %d", all.sent, alone.sent)
		}
		for i := range frames {
			if !frames[i].equal(&intervals[i]) {
				w.fail("complete, but interval %d has %d events; one machine: %d", i+1, frames[i].sent, intervals[i].sent)
			}
		}
		g.checkStart(o)
		g.checkReader()
	}
	g.checkStopped(o)
}

// checkAgent compares what arrived of an agent with what its engine did.
func (g *simGame) checkAgent(a *simAgent, e *simEngine, o *agentOutcome, frames []simTotal, all *simTotal) {
	w := g.simWorld
	got := w.op.frames[a.name]
	result, ended := w.op.results[a.name]
	state := w.op.outcome.State
	if e == nil || e.lastFired < 0 {
		if e == nil && (len(got) > 0 || len(result) > 0) {
			w.fail("a report of agent %s, which did not start", a.name)
		}
		if o.MayHaveFiredUntil == 0 && e == nil {
			return
		}
	}
	if e == nil {
		return
	}
	if state == stateCancelled && e.lastFired >= 0 {
		w.fail("cancelled, but agent %s fired", a.name)
	}
	if uint64(len(got)) != o.Frames || len(got) > len(e.frames) {
		w.fail("%d frames of %s arrived, the outcome has %d, its engine made %d", len(got), a.name, o.Frames, len(e.frames))
		return
	}
	var sum simTotal
	for i, f := range got {
		if string(f) != string(e.frames[i]) {
			w.fail("frame %d of %s is not what its engine made", i+1, a.name)
			return
		}
		var c simCount
		fromJSON(f, &c)
		sum.add(c)
		if e.reads {
			continue
		}
		frames[i].add(c)
	}
	if ended && o.Result {
		var c simCount
		fromJSON(result, &c)
		var total simTotal
		total.add(c)
		all.add(c)
		if string(result) != string(e.result) {
			w.fail("the result of %s is not what its engine made", a.name)
		}
		if !total.equal(&sum) {
			w.fail("the frames of %s have %d events, its result %d", a.name, sum.sent, total.sent)
		}
	}
	if g.froze && !o.Result {
		w.fail("the result of %s was given up, only the operator stood still", a.name)
	}
	if (o.State == stateComplete || state == stateComplete) && (!ended || !o.Result || e.next != len(e.events)) {
		w.fail("agent %s is complete with %d of %d events, result %v", a.name, e.next, len(e.events), ended)
	}
	if o.MayHaveFiredUntil > 0 && e.lastFired > w.op.clock.real(o.MayHaveFiredUntil) {
		w.fail("agent %s fired at %v, the operator says until %v", a.name, e.lastFired, w.op.clock.real(o.MayHaveFiredUntil))
	}
}

// checkClock compares what the operator knows of a clock with the truth.
func (g *simGame) checkClock(a *simAgent, o *agentOutcome) {
	w, m := g.simWorld, g.op.c.byName[a.name]
	now := w.op.clock.mono(w.now)
	for _, at := range []time.Duration{now, now - 10*time.Second} {
		offset, bound := m.clock.At(at)
		truth := a.clock.mono(w.op.clock.real(at)) - at
		if bound != unknownBound && (truth-offset).Abs() > bound {
			w.fail("the clock of %s is ahead by %v; taken for %v, at most %v wrong", a.name, truth, offset, bound)
		}
	}
	if t0 := w.op.outcome.T0; t0 > 0 {
		truth := a.clock.mono(w.op.clock.real(t0)) - t0
		if (truth - o.Offset).Abs() > o.BoundStart {
			w.fail("at T0 the clock of %s was ahead by %v; taken for %v, at most %v wrong", a.name, truth, o.Offset, o.BoundStart)
		}
	}
}

// checkStart checks the promise on how far apart the starts were.
func (g *simGame) checkStart(o *runOutcome) {
	first, last := never, time.Duration(0)
	for _, a := range g.agents {
		at := a.clock.real(a.engines[0].start)
		first, last = min(first, at), max(last, at)
	}
	if last-first > o.Skew {
		g.fail("the starts were %v apart, at most %v were promised", last-first, o.Skew)
	}
}

// checkReader checks that an agent that reads got the order to end when the others had ended.
func (g *simGame) checkReader() {
	last := g.agents[len(g.agents)-1].engines[0]
	for _, a := range g.agents[:len(g.agents)-1] {
		if e := a.engines[0]; last.reads && (last.ordered == 0 || last.ordered < e.over) {
			g.fail("agent %s had to stop reading at %v, and %s ended at %v", last.m.name, last.ordered, a.name, e.over)
		}
	}
}

// checkStopped checks that after an order to stop no agent fires for more than a second, if the order can arrive.
func (g *simGame) checkStopped(o *runOutcome) {
	if g.op.ordered == 0 || g.op.recovers {
		return
	}
	for i, a := range g.agents {
		reached := a.alive && !a.frozen && a.resumed == a.clock.mono(0) && a.up.cutTo == 0 && a.down.cutTo == 0 && o.Agents[i].Err == ""
		if len(a.engines) == 1 && reached && !g.opFroze() && a.engines[0].lastFired > g.op.ordered+time.Second+20*g.faults.jitter {
			g.fail("agent %s fired %v after the order to stop", a.name, a.engines[0].lastFired-g.op.ordered)
		}
	}
}

func (g *simGame) opFroze() bool { return g.op.resumed != 0 }

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func fromJSON(data []byte, v any) {
	if err := json.Unmarshal(data, v); err != nil {
		panic(err)
	}
}
