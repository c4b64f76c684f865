package find

import (
	"math"
	"math/rand/v2"
)

// A server is a first-in-first-out server in virtual time.
type server struct {
	rnd     *rand.Rand
	service func(s *server, now float64) float64 // of one event that begins now, s
	delay   func(s *server, rate float64) float64
	poisson bool
	most    float64 // that the generator can send; 0: any rate

	now, free float64 // virtual time and the end of the last service, s
	backlog   float64 // longest seen, s
	state     float64 // of special servers
	dies      float64 // rate at which it dies; 0: never
}

// run runs a trial. Between trials the queue empties.
func (s *server) run(t Trial, limits []TimeLimit) Outcome {
	o := Outcome{Trial: t}
	begin := s.now
	switch {
	case t.Role == Probe:
		n, end := 0, s.now+t.Measure.Seconds()
		s.free = s.now
		for s.free < end {
			s.free += s.service(s, s.free)
			n++
		}
		o.Achieved = float64(n) / t.Measure.Seconds()
		s.now = s.free
		o.Slots = []Slot{{Events: uint64(n)}}
		o.Elapsed = seconds(s.now - begin)
		return o
	case s.dies > 0 && t.Rate >= s.dies:
		o.Dead = "the system ended"
	case s.most > 0 && t.Rate > s.most:
		o.Generator = "the generator cannot send this rate"
	}
	start := s.now + t.Settle.Seconds()
	end := start + t.Measure.Seconds()
	width := t.Slot.Seconds()
	o.Slots = make([]Slot, int(t.Measure/t.Slot))
	over := make([]uint64, len(o.Slots)*len(limits))
	for i := range o.Slots {
		o.Slots[i].Over = over[i*len(limits) : (i+1)*len(limits)]
	}
	var within []float64
	for _, l := range limits {
		within = append(within, l.Within.Seconds())
	}
	extra := 0.0
	if s.delay != nil {
		extra = s.delay(s, t.Rate)
	}
	answered := 0
	first := s.now
	due := first
	for k := 0; ; k++ {
		if s.poisson {
			due += s.rnd.ExpFloat64() / t.Rate
		} else {
			due = first + float64(k)/t.Rate
		}
		if due >= end {
			break
		}
		s.free = max(s.free, due)
		s.free += s.service(s, s.free)
		s.backlog = max(s.backlog, s.free-due)
		if s.free >= start && s.free < end {
			answered++
		}
		if due < start {
			continue
		}
		i := int((due - start) / width)
		if i >= len(o.Slots) {
			break
		}
		o.Slots[i].Events++
		for j, x := range within {
			if s.free+extra-due > x {
				o.Slots[i].Over[j]++
			}
		}
		o.Slots[i].Waiting = uint64(max(0, s.free-(start+float64(i+1)*width)) * 1000)
	}
	o.Achieved = float64(answered) / t.Measure.Seconds()
	s.now = max(end, s.free) + 1
	o.Elapsed = seconds(s.now - begin)
	return o
}

// The servers of the closed forms, at 1,000 events a second.
const mean = 0.001

func exponential(s *server, _ float64) float64 { return s.rnd.ExpFloat64() * mean }
func constant(*server, float64) float64        { return mean }

func newServer(seed uint64, service func(*server, float64) float64) *server {
	return &server{rnd: rand.New(rand.NewPCG(seed, 1)), service: service}
}

// find searches to the end.
func (s *server) find(o *Options) (*Answer, []Outcome) {
	var history []Outcome
	for {
		t, a := o.Next(history)
		if a != nil {
			return a, history
		}
		if t.Role != Probe && !(t.Rate > 0) || t.Measure <= 0 || math.IsInf(t.Rate, 0) {
			panic("a trial without rate or length")
		}
		history = append(history, s.run(*t, o.Times))
	}
}
