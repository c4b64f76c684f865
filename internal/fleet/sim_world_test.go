package fleet

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// A simWorld is machines with their own clocks, a network that loses, doubles, delays and reorders messages, and one true time.
type simWorld struct {
	rnd    *rand.Rand
	now    time.Duration // the true time
	queue  simQueue
	seq    uint64
	faults simFaults
	plan   simPlan
	agents []*simAgent
	op     *simOperator
	errs   []string
	same   int // tasks at the same time
	log    func(format string, args ...any)
}

// simFaults is how bad the network of a world is.
type simFaults struct {
	drop, double float64
	jitter       time.Duration
}

type simTask struct {
	at  time.Duration
	seq uint64
	f   func()
}

type simQueue []simTask

func (q simQueue) Len() int { return len(q) }
func (q simQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q simQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simQueue) Push(x any)   { *q = append(*q, x.(simTask)) }
func (q *simQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

func (w *simWorld) fail(format string, args ...any) {
	w.errs = append(w.errs, fmt.Sprintf("%v: ", w.now)+fmt.Sprintf(format, args...))
}

// at does something at a true time.
func (w *simWorld) at(at time.Duration, f func()) {
	w.seq++
	heap.Push(&w.queue, simTask{max(at, w.now), w.seq, f})
}

func (w *simWorld) after(d time.Duration, f func()) { w.at(w.now+d, f) }

// run lets time pass up to a true time, or until stop.
func (w *simWorld) run(until time.Duration, stop func() bool) {
	for len(w.queue) > 0 && w.queue[0].at <= until && len(w.errs) == 0 && !stop() {
		t := heap.Pop(&w.queue).(simTask)
		if w.same++; w.now != t.at {
			w.same = 0
		} else if w.same > 10_000 {
			w.fail("time does not pass")
		}
		w.now = t.at
		t.f()
	}
	if len(w.errs) == 0 && !stop() {
		w.now = max(w.now, until)
	}
}

// A simClock is a monotonic clock: it began at some time and is too fast or too slow.
type simClock struct {
	offset time.Duration
	drift  float64
}

func (c simClock) mono(truth time.Duration) time.Duration {
	return c.offset + truth + time.Duration(c.drift*float64(truth))
}

// real returns the first true time at which the clock shows at least mono.
func (c simClock) real(mono time.Duration) time.Duration {
	r := time.Duration(float64(mono-c.offset) / (1 + c.drift))
	for c.mono(r) < mono {
		r++
	}
	for c.mono(r-1) >= mono {
		r--
	}
	return r
}

func (w *simWorld) clock() simClock {
	return simClock{time.Duration(w.rnd.Int64N(int64(2*time.Hour))) + time.Second, (w.rnd.Float64()*2 - 1) * 100e-6}
}

// A simHost is a machine with one process: it may be stopped for a while, or killed.
type simHost struct {
	w             *simWorld
	clock         simClock
	process       int // counts processes; 0: none has begun
	alive, frozen bool
	resumed       time.Duration // on its clock: it stood still before
	waiting       []func()      // while it stands still
	ticks         int
	life          int // messages until it is killed; 0: it is not
	killed        func()
}

// do lets the process do something, now or once it runs again.
func (h *simHost) do(process int, f func(now time.Duration)) {
	switch {
	case !h.alive || process != h.process:
	case h.frozen:
		h.waiting = append(h.waiting, func() { h.do(process, f) })
	default:
		f(h.clock.mono(h.w.now))
	}
}

// freeze stops the process for a while.
func (h *simHost) freeze(d time.Duration) {
	if !h.alive || h.frozen {
		return
	}
	h.frozen = true
	h.w.after(d, func() {
		h.frozen = false
		h.resumed = h.clock.mono(h.w.now)
		waiting := h.waiting
		h.waiting = nil
		// What arrived in between and what is due come in any order.
		if h.w.rnd.IntN(2) == 0 {
			h.w.rnd.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
		}
		for _, f := range waiting {
			f()
		}
	})
}

func (h *simHost) kill() {
	if h.alive {
		h.alive, h.frozen, h.waiting = false, false, nil
		if h.killed != nil {
			h.killed()
		}
	}
}

// count counts a message that was sent or received, after which the process may end.
func (h *simHost) count() {
	if h.life > 0 {
		if h.life--; h.life == 0 {
			h.kill()
		}
	}
}

// tick calls f when the clock shows a time, unless something else happens before.
func (h *simHost) tick(at time.Duration, f func(now time.Duration)) {
	h.ticks++
	if at == never {
		return
	}
	ticks, process := h.ticks, h.process
	h.w.at(h.clock.real(at), func() {
		if ticks == h.ticks {
			h.do(process, f)
		}
	})
}

// A simLink is one way between an agent and the operator.
type simLink struct {
	base    time.Duration
	cutFrom time.Duration // a partition
	cutTo   time.Duration
	bytes   map[time.Duration]int // of control traffic, by second
}

// send takes a message over a link.
func (w *simWorld) send(l *simLink, m *message, deliver func([]byte)) {
	data := m.Encode()
	if len(data) > maxMessage {
		w.fail("a %s of %d bytes", m.Kind, len(data))
	}
	if m.Kind != kindFrame && m.Kind != kindPart && m.Kind != kindLoad {
		l.bytes[w.now/time.Second] += len(data)
	}
	n := 1
	if w.rnd.Float64() < w.faults.double {
		n = 2
	}
	for range n {
		if w.rnd.Float64() < w.faults.drop || w.now >= l.cutFrom && w.now < l.cutTo {
			continue
		}
		d := l.base
		if w.faults.jitter > 0 {
			d += time.Duration(w.rnd.Int64N(int64(w.faults.jitter)))
			if w.rnd.IntN(200) == 0 { // very late
				d += time.Duration(w.rnd.Int64N(int64(20 * w.faults.jitter)))
			}
		}
		w.after(d, func() {
			if w.now >= l.cutFrom && w.now < l.cutTo {
				return
			}
			deliver(data)
		})
	}
}

// A simAgent is a machine with an agent and its engine.
type simAgent struct {
	simHost
	name     string
	agent    *agentProtocol
	spool    Spool
	reopen   func() Spool
	engine   *simEngine
	engines  []*simEngine // all that ever had an order to start
	up, down simLink
	heard    time.Duration // true time of the newest message of the operator

	opened int           // the process that opened
	opens  time.Duration // how long the engine takes to open
	noOpen bool          // it fails
	fails  time.Duration // the engine fails this time after the start; 0: never
}

func (a *simAgent) incarnation() string { return fmt.Sprintf("%s/%d", a.name, a.process) }

// boot starts the agent's process.
func (a *simAgent) boot() {
	a.process++
	a.alive, a.engine = true, nil
	a.resumed = a.clock.mono(a.w.now)
	if a.reopen != nil {
		a.spool = a.reopen()
	}
	a.agent = newAgentProtocol(Info{Name: a.name, Incarnation: a.incarnation(), Version: "1", Layout: "hdr", Processors: 2}, a.spool)
}

// step lets the agent do something, its engine first.
func (a *simAgent) step(f func(now time.Duration)) {
	a.do(a.process, func(now time.Duration) {
		if a.engine != nil {
			a.engine.advance(now)
		}
		f(now)
		a.pump(now)
	})
}

// pump does what the agent wants done.
func (a *simAgent) pump(now time.Duration) {
	for range 100 {
		send, do := a.agent.Take()
		if len(send)+len(do) == 0 {
			break
		}
		for _, m := range send {
			a.count()
			if !a.alive {
				return
			}
			a.w.send(&a.up, m, func(data []byte) { a.w.op.arrived(a, data) })
		}
		for _, c := range do {
			a.command(now, c)
		}
	}
	next := a.agent.Next()
	if a.engine != nil {
		next = min(next, a.engine.wake())
	}
	a.tick(max(next, now), func(time.Duration) { a.step(func(now time.Duration) { a.agent.Tick(now) }) })
}

func (a *simAgent) command(now time.Duration, c command) {
	w := a.w
	if c.Do != orderOpen {
		if c.Do == orderStart {
			a.engines = append(a.engines, a.engine)
			if a.fails > 0 {
				e, process := a.engine, a.process
				w.at(a.clock.real(c.At)+a.fails, func() {
					if a.process == process && !e.ending {
						a.step(func(now time.Duration) {
							if !e.ending && !e.ended {
								e.cut(now)
								e.finish(errOpen)
							}
						})
					}
				})
			}
		}
		a.engine.command(now, c)
		return
	}
	var share simShare
	e := &simEngine{m: a, run: c.Run, lastFired: -1}
	if json.Unmarshal(c.Plan, &e.plan) != nil || json.Unmarshal(c.Share, &share) != nil {
		w.fail("a plan that cannot be read")
		return
	}
	e.events, e.reads = e.plan.events(share.From, share.To), share.From == share.To
	a.engine = e
	process := a.process
	if a.opened == process {
		w.fail("agent %s opened twice", a.name)
	}
	a.opened = process
	w.after(a.opens, func() {
		a.do(process, func(time.Duration) {
			if a.engine == e && !e.ended {
				a.step(func(now time.Duration) {
					if a.noOpen {
						e.ended = true
						a.agent.Opened(now, errOpen)
						return
					}
					a.agent.Opened(now, nil)
				})
			}
		})
	})
}

// arrived takes a message of the operator.
func (a *simAgent) arrived(data []byte) {
	process := a.process
	a.do(process, func(time.Duration) {
		a.count()
		a.step(func(now time.Duration) {
			m, err := decodeMessage(data)
			if err != nil {
				a.w.fail("agent %s cannot read: %v", a.name, err)
				return
			}
			a.heard = a.w.now
			a.agent.Receive(now, m)
		})
	})
}

// A simOperator is the operator's machine.
type simOperator struct {
	simHost
	c             *coordinator
	frames        map[string][][]byte
	results       map[string][]byte
	outcome       *runOutcome
	finished      time.Duration // true time
	ordered       time.Duration // true time of the order to all to stop; 0: none
	recovers      bool
	ready, failed map[string]bool
}

func (o *simOperator) boot(cfg runConfig) {
	o.process++
	o.alive = true
	o.recovers = cfg.Recover
	cfg.Session = fmt.Sprintf("session%d", o.process)
	c, err := newCoordinator(cfg)
	if err != nil {
		o.w.fail("no coordinator: %v", err)
		return
	}
	o.ready, o.failed = map[string]bool{}, map[string]bool{}
	o.c, o.frames, o.results, o.outcome = c, map[string][][]byte{}, map[string][]byte{}, nil
	o.step(func(now time.Duration) { c.Tick(now) })
}

func (o *simOperator) step(f func(now time.Duration)) {
	o.do(o.process, func(now time.Duration) { f(now); o.pump(now) })
}

func (o *simOperator) pump(now time.Duration) {
	w := o.w
	send, events := o.c.Take()
	for _, e := range events {
		o.event(e)
	}
	if o.ordered == 0 && wantOrder[o.c.want] >= wantOrder[wantStop] {
		o.ordered = w.now
	}
	for _, s := range send {
		o.count()
		if !o.alive {
			return
		}
		for _, a := range w.agents {
			if a.name == s.Agent {
				w.send(&a.down, s.Message, a.arrived)
			}
		}
	}
	o.tick(max(o.c.Next(), now), func(time.Duration) { o.step(func(now time.Duration) { o.c.Tick(now) }) })
}

func (o *simOperator) event(e event) {
	w := o.w
	if w.log != nil {
		w.log("%v %T %.300v", w.now, e, fmt.Sprintf("%v", e))
	}
	if o.outcome != nil {
		w.fail("%T after the end", e)
	}
	switch e := e.(type) {
	case frameOf:
		o.frames[e.Agent] = append(o.frames[e.Agent], e.Data)
		if uint64(len(o.frames[e.Agent])) != e.Number {
			w.fail("frame %d of %s came as number %d", e.Number, e.Agent, len(o.frames[e.Agent]))
		}
	case agentReady:
		if o.ready[e.Agent] {
			w.fail("agent %s was ready twice", e.Agent)
		}
		o.ready[e.Agent] = true
	case agentFailed:
		o.failed[e.Agent] = true
	case resultOf:
		if _, ok := o.results[e.Agent]; ok {
			w.fail("a second result of %s", e.Agent)
		}
		o.results[e.Agent] = e.Data
	case runFinished:
		o.outcome, o.finished = &e.Outcome, w.now
		process := o.process
		w.after(time.Duration(w.rnd.IntN(1000))*time.Millisecond, func() {
			if process == o.process {
				o.step(func(now time.Duration) { o.c.Release(now) })
			}
		})
	}
}

func (o *simOperator) arrived(a *simAgent, data []byte) {
	process := o.process
	o.do(process, func(time.Duration) {
		o.count()
		o.step(func(now time.Duration) {
			m, err := decodeMessage(data)
			if err != nil {
				o.w.fail("the operator cannot read: %v", err)
				return
			}
			o.c.Receive(now, a.name, m)
		})
	})
}
