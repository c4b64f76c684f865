package standin

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"
)

const (
	// coldShare is the share of the capacity with which a cold server begins.
	coldShare = 0.25

	// collapsedShare is the share of the capacity that is left after a collapse.
	collapsedShare = 0.5

	// longestService bounds a service time, in seconds: sums of service times must
	// not overflow.
	longestService = 1e6

	// latest is the latest time, in nanoseconds since the first arrival.
	latest = math.MaxInt64 / 2
)

// A Queue is a queue, first in, first out, before one or more equal servers. It computes
// when the events of a stand-in are served, and which find it full. It is not safe for
// concurrent use.
type Queue struct {
	o       CapacityOptions
	rng     *rand.Rand
	origin  time.Time // of the first arrival
	started bool
	now     int64 // of the last arrival; here and below, nanoseconds since origin
	free    []int64
	waiting starts
	carry   float64 // the nanoseconds that rounding has removed from service times

	collapsed bool
	credit    float64 // seconds that it can still burst; negative: owed
	served    float64 // seconds for which it has served, as a mean of the servers
}

// NewQueue returns an idle queue with valid options that say a rate.
func NewQueue(o CapacityOptions) *Queue {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], o.Server.Seed)
	return &Queue{
		o: o, rng: rand.New(rand.NewChaCha8(key)), // unlike PCG's, its sequences of similar seeds are independent
		free: make([]int64, o.Server.Servers), credit: o.Credits.For.Seconds(),
	}
}

// Arrive adds events that arrive together, and returns when the last of them will
// have been served. It takes all of them or none: not ok means that more events than
// the queue holds would wait. A time before that of the last arrival counts as that.
func (s *Queue) Arrive(now time.Time, events int) (done time.Time, ok bool) {
	if !s.started {
		s.started, s.origin = true, now
	}
	s.now = max(s.now, min(int64(now.Sub(s.origin)), latest))
	s.waiting.drop(s.now)
	if !s.fits(events) {
		return time.Time{}, false
	}
	last := s.now
	for range events {
		// The event is served by the server that is free first.
		idleSince := s.free[0]
		start := max(s.now, idleSince)
		end := min(start+s.service(start-s.now, start-idleSince), latest)
		s.free[0] = end
		s.sink()
		if start > s.now {
			s.waiting.add(start)
		}
		last = max(last, end)
	}
	return s.origin.Add(time.Duration(last)), true
}

// fits reports whether the queue holds this number of events more.
func (s *Queue) fits(events int) bool {
	wait := int64(events) // how many of them wait
	if s.waiting.len() == 0 {
		for _, free := range s.free {
			if wait == 0 {
				break
			}
			if free <= s.now {
				wait--
			}
		}
	}
	return int64(s.waiting.len())+wait <= s.o.Server.Queue
}

// service draws the service time of the next event, which has waited for wait
// before a server that was idle for idle. Its speed is that of the moment at which
// its service starts.
func (s *Queue) service(wait, idle int64) int64 {
	servers := float64(len(s.free))
	rate := s.o.Server.Rate
	burst := s.o.Credits.Rate
	if burst > 0 {
		s.credit += float64(idle) / 1e9 / servers * rate / (burst - rate)
		s.credit = min(s.credit, s.o.Credits.For.Seconds())
	}
	bursts := burst > 0 && s.credit > 0
	if bursts {
		rate = burst
	}
	if s.o.Collapse > 0 {
		switch {
		case wait > int64(s.o.Collapse):
			s.collapsed = true
		case wait == 0:
			s.collapsed = false
		}
		if s.collapsed {
			rate *= collapsedShare
		}
	}
	if warm := s.o.Warm.Seconds(); s.served < warm {
		rate *= coldShare + (1-coldShare)*s.served/warm
	}
	seconds := min(s.draw()*servers/rate, longestService)
	s.served += seconds / servers
	if bursts {
		s.credit -= seconds / servers
	}
	exact := seconds*1e9 + s.carry
	whole := math.Floor(exact)
	s.carry = exact - whole
	return int64(whole)
}

// draw draws a service time with a mean of 1.
func (s *Queue) draw() float64 {
	switch v := s.o.Server.Service; v.Kind {
	case Exponential:
		return s.rng.ExpFloat64()
	case Lognormal:
		return math.Exp(v.Sigma*s.rng.NormFloat64() - v.Sigma*v.Sigma/2)
	default:
		return 1
	}
}

// sink restores the order of the heap free after its first element grew.
func (s *Queue) sink() {
	h := s.free
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[i] <= h[child] {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// starts are the times at which the waiting events begin to be served, in order.
type starts struct {
	times []int64
	first int // before it are those that no longer wait
}

func (w *starts) len() int { return len(w.times) - w.first }

func (w *starts) add(t int64) {
	if w.first > 0 && len(w.times) == cap(w.times) && w.first >= len(w.times)/2 {
		w.times = w.times[:copy(w.times, w.times[w.first:])]
		w.first = 0
	}
	w.times = append(w.times, t)
}

// drop removes the events whose service begins at now at the latest.
func (w *starts) drop(now int64) {
	for w.first < len(w.times) && w.times[w.first] <= now {
		w.first++
	}
	if w.first == len(w.times) {
		w.times, w.first = w.times[:0], 0
	}
}
