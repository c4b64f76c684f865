package fleet

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"carronade/load"
	"carronade/measure"
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

// events returns the events of the streams [from, to), in the order in which they are
// due.
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

// A simCount is what is counted of an interval, or of a whole run. The response time of
// an event follows from its number.
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
	m.w.after(time.Duration(m.w.rnd.IntN(300))*time.Millisecond, func() {
		m.do(process, func(now time.Duration) { e.end(now, err) })
	})
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
