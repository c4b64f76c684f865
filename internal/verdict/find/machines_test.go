package find

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A machine has the generator of a search on it, and other programs too. Its server is as in the other simulations.
type machine struct {
	*server
	spells  []spell // of other programs, in the order of time
	stalls  float64 // of the generator alone, a second
	stalled float64 // their mean length, s
}

// A spell is a time in which other programs are busy.
type spell struct {
	from, to float64 // s
	slower   float64 // how much longer the server takes
	delay    float64 // with which the generator runs, on average, s
	others   float64 // processors that they use
}

const simulatedProcessors = 2

// machineKinds make machines. All searches on a machine begin at another moment of its life.
var machineKinds = []struct {
	name string
	make func(r *rand.Rand, m *machine)
}{
	{"quiet", func(*rand.Rand, *machine) {}},
	{"noisy", func(r *rand.Rand, m *machine) {
		m.stalls, m.stalled = math.Pow(10, -1+2*r.Float64()), 0.002+0.02*r.Float64()
	}},
	{"bursty", func(r *rand.Rand, m *machine) {
		apart, long := 20+100*r.Float64(), 2+28*r.Float64()
		m.busy(r, func() (float64, float64) { return apart * r.ExpFloat64(), long * (0.5 + r.Float64()) })
	}},
	{"stolen", func(r *rand.Rand, m *machine) { // for minutes
		m.busy(r, func() (float64, float64) { return 60 + 300*r.ExpFloat64(), 30 + 200*r.ExpFloat64() })
	}},
}

// busy fills an hour with spells.
func (m *machine) busy(r *rand.Rand, next func() (apart, long float64)) {
	slower, delay := 1.3+2*r.Float64(), 0.001*math.Pow(10, 2*r.Float64())
	for now := 0.0; now < 3600; {
		apart, long := next()
		now += apart
		m.spells = append(m.spells, spell{now, now + long, slower, delay, simulatedProcessors * (1 - 1/slower) * 1.2})
		now += long
	}
}

// at is the spell of a moment, nil if there is none.
func (m *machine) at(now float64) *spell {
	i, found := slices.BinarySearchFunc(m.spells, now, func(s spell, now float64) int {
		switch {
		case s.to <= now:
			return -1
		case s.from > now:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return &m.spells[i]
}

// busyBetween is how many processors other programs used on average.
func (m *machine) busyBetween(from, to float64) (used float64) {
	for i := range m.spells {
		s := &m.spells[i]
		used += max(0, min(s.to, to)-max(s.from, from)) / (to - from) * s.others
	}
	return used
}

// busiest is how many of them other programs used at most.
func (m *machine) busiest(from, to float64) (used float64) {
	for i := range m.spells {
		if s := &m.spells[i]; s.from < to && s.to > from {
			used = max(used, s.others)
		}
	}
	return used
}

// run runs a trial as the server does, with a generator that is delayed.
func (m *machine) run(t Trial, limits []TimeLimit) Outcome {
	o := Outcome{Trial: t}
	begin := m.now
	done := func(end float64) Outcome {
		m.now = end
		o.Elapsed = seconds(m.now - begin)
		some := 0.02 * simulatedProcessors * m.rnd.Float64()
		o.Others = Use{Used: some + m.busyBetween(begin, m.now), Bound: simulatedProcessors}
		o.OthersMost = some + m.busiest(begin, m.now)
		return o
	}
	serve := func(now float64) float64 {
		x := m.service(m.server, now)
		if s := m.at(now); s != nil {
			x *= s.slower
		}
		return x
	}
	if t.Role == Probe {
		n, end := 0, m.now+t.Measure.Seconds()
		for m.free = m.now; m.free < end; n++ {
			m.free += serve(m.free)
		}
		o.Achieved, o.Slots = float64(n)/t.Measure.Seconds(), []Slot{{Events: uint64(n)}}
		return done(m.free)
	}
	start := m.now + t.Settle.Seconds()
	end, width := start+t.Measure.Seconds(), t.Slot.Seconds()
	o.Slots = make([]Slot, int(t.Measure/t.Slot))
	for i := range o.Slots {
		o.Slots[i].Over = make([]uint64, len(limits))
	}
	var upper, lower []float64
	answered, first := 0, m.now
	sent, stall := first, first+m.rnd.ExpFloat64()/max(m.stalls, 1e-9)
	for k := 0; ; k++ {
		due := first + float64(k)/t.Rate
		if due >= end {
			break
		}
		late := 0.0
		if s := m.at(due); s != nil && m.rnd.Float64() < 0.3 {
			late = s.delay * m.rnd.ExpFloat64()
		}
		if m.stalls > 0 && due > stall {
			late = max(late, m.stalled*m.rnd.ExpFloat64())
			stall = due + m.rnd.ExpFloat64()/m.stalls
		}
		sent = max(sent, due+late)
		m.free = max(m.free, sent)
		m.free += serve(m.free)
		if m.free >= start && m.free < end {
			answered++
		}
		i := int((due - start) / width)
		if due < start || i >= len(o.Slots) {
			continue
		}
		s := &o.Slots[i]
		s.Events++
		upper, lower = append(upper, m.free-due), append(lower, m.free-sent)
		for j, l := range limits {
			if m.free-due > l.Within.Seconds() {
				s.Over[j]++
			}
		}
		s.Waiting = uint64(max(0, m.free-(start+float64(i+1)*width)) * t.Rate)
	}
	o.Achieved = float64(answered) / t.Measure.Seconds()
	m.rate(&o, upper, lower, limits)
	return done(max(end, m.free) + 1)
}

// rate says whether a trial is trusted, as reports do: by how far the generator may have moved
// percentiles, and whether limits would hold without that.
func (m *machine) rate(o *Outcome, upper, lower []float64, limits []TimeLimit) {
	slices.Sort(upper)
	slices.Sort(lower)
	if len(upper) == 0 {
		return
	}
	at := func(of []float64, q float64) time.Duration {
		return seconds(of[min(len(of)-1, int(q*float64(len(of))))])
	}
	level := measure.Trusted
	for _, q := range []float64{0.5, 0.9, 0.95, 0.99} {
		level = level.Worse(measure.LevelOf(at(lower, q), at(upper, q)))
	}
	if level != measure.Trusted {
		o.Trust = level
	}
	if level == measure.NotTrusted {
		o.Doubt = "the generator was late"
	}
	for j, l := range limits {
		if at(upper, l.Quantile) > l.Within && at(lower, l.Quantile) <= l.Within {
			for i := range o.Slots {
				if o.Slots[i].OverLeast == nil {
					o.Slots[i].OverLeast = slices.Clone(o.Slots[i].Over)
				}
				o.Slots[i].OverLeast[j] = 0
			}
		}
	}
}

// knownCeilings are servers whose ceilings of p99<50ms are known.
var knownCeilings = []struct {
	name     string
	capacity float64 // events a second
	random   bool    // exponential service times, else constant ones
}{
	{"constant, 300/s", 300, false},
	{"constant, 1000/s", 1000, false},
	{"exponential, 400/s", 400, true},
	{"exponential, 1000/s", 1000, true},
}

// ceilingOf is the ceiling of a server with events at even distances. With exponential service times the
// response time is exponential (D/M/1): its rate x is log(100) in 50 ms, and the load then follows.
func ceilingOf(capacity float64, random bool) float64 {
	if !random {
		return capacity
	}
	x := math.Log(100) / 0.05
	return -x / math.Log(1-x/capacity)
}

// A machineTally counts the answers of searches on one kind of machine.
type machineTally struct {
	searches, found, wrong, cannot int
	endings                        map[Ending]int
}

// Whatever the machine does, an answer does not contradict the ceiling that the system has: the interval
// contains it, or the answer is that it cannot tell. Nor does an answer contradict a trial that was judged.
// CARRONADE_TEST_MACHINES is the number of machines.
func TestMachines(t *testing.T) {
	machines := machinesOf(t)
	tallies := make([]machineTally, len(machineKinds))
	for k, kind := range machineKinds {
		c := &tallies[k]
		c.endings = map[Ending]int{}
		for i := range machines / len(machineKinds) {
			for j, known := range knownCeilings {
				seed := uint64(i*len(knownCeilings) + j)
				a := searchOn(kind.make, seed, known.capacity, known.random)
				c.searches++
				c.endings[a.Ending]++
				ceiling := ceilingOf(known.capacity, known.random)
				right, tells := a.rightAbout(ceiling)
				switch {
				case !right:
					c.wrong++
					t.Logf("%s %d, %s: %s, %.1f to %.1f, ceiling %.1f: %s", kind.name, i, known.name, a.Ending, a.Holds, a.Fails, ceiling, a.Why)
					if testing.Verbose() {
						trialsOf(t, a)
					}
				case tells:
					c.found++
				default:
					c.cannot++
				}
				if why := contradicted(a); why != "" {
					t.Errorf("%s %d, %s: %s; %+v", kind.name, i, known.name, why, *a)
					trialsOf(t, a)
				}
			}
		}
	}
	for k, kind := range machineKinds {
		c := &tallies[k]
		t.Logf("%-7s %d searches: %d with the ceiling, %d cannot tell, %d wrong; %v", kind.name, c.searches, c.found, c.cannot, c.wrong, c.endings)
		assert.True(t, c.wrong*20 <= c.searches, "%s: %d of %d answers are wrong", kind.name, c.wrong, c.searches)
	}
	assert.True(t, tallies[0].found*10 >= tallies[0].searches*9, "on a quiet machine %d of %d searches found the ceiling", tallies[0].found, tallies[0].searches)
}

func machinesOf(t *testing.T) int {
	t.Helper()
	if text := os.Getenv("CARRONADE_TEST_MACHINES"); text != "" {
		n := assert.Value(strconv.Atoi(text))(t)
		return n
	}
	if testkit.Conformance {
		return 200
	}
	return testkit.Cases(8, 4)
}

// searchOn searches on a machine.
func searchOn(kind func(*rand.Rand, *machine), seed uint64, capacity float64, random bool) *Answer {
	s := newServer(seed, func(s *server, _ float64) float64 {
		if random {
			return s.rnd.ExpFloat64() / capacity
		}
		return 1 / capacity
	})
	m := &machine{server: s}
	kind(rand.New(rand.NewPCG(seed, 77)), m)
	m.now = 300 * s.rnd.Float64()
	m.free = m.now
	o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.05, Budget: 10 * time.Minute}
	a, _ := drive(o, func(t Trial, _ int) Outcome { return m.run(t, o.Times) })
	return a
}

// rightAbout reports whether an answer is right about a ceiling, and whether it says where it is.
func (a *Answer) rightAbout(ceiling float64) (right, tells bool) {
	const digits = 1e-3
	low, high := ceiling*(1-digits), ceiling*(1+digits)
	switch a.Ending {
	case Found:
		return a.Holds <= high && a.Fails >= low, true
	case AtLeast, Highest:
		return a.Holds <= high*1.02, false
	case None, NoTop, Died:
		return false, true
	}
	return true, false // it cannot tell
}

// contradicted says which judged trial contradicts an answer that was found, "" if none does.
func contradicted(a *Answer) string {
	if a.Ending != Found {
		return ""
	}
	last := map[float64]*Tried{}
	for i := range a.Trials {
		if t := &a.Trials[i]; t.Verdict != nil && t.Verdict.Result != Invalid && (t.Role == Search || t.Role == Confirm) {
			last[t.Rate] = t
		}
	}
	for rate, t := range last {
		if t.Role == Confirm && t.Verdict.Result == Pass && rate > a.Fails || t.Verdict.Result == Fail && rate < a.Holds {
			return fmt.Sprintf("%g/s %s", rate, t.Verdict.Result)
		}
	}
	if d := a.Deciding; d == nil || d.NotTrusted > 0 {
		return fmt.Sprintf("it rests on %+v", d)
	}
	return ""
}
