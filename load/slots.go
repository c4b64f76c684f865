package load

import "time"

// slots records when each free slot of an in-flight bound became free, oldest first.
// Slots that became free together share an entry: answers to small batches arrive by
// the hundred, and their slots then cost as much as one. So do those that have been free
// for longer than any event waits (see join).
type slots struct {
	ring []slot
	head int
	used int // entries
	n    int // slots
}

type slot struct {
	at time.Duration
	n  int
}

// leastSlots is the first size of the ring: with thousands of lanes, most of which have
// almost all of their slots free, it is a part of their memory.
const leastSlots = 4

func (s *slots) fill(n int, at time.Duration) {
	*s = slots{ring: make([]slot, leastSlots)}
	if n > 0 {
		s.push(at, n)
	}
}

// pop takes n slots, which must be free, and returns when the first of them became
// free.
func (s *slots) pop(n int) time.Duration {
	first := s.ring[s.head].at
	s.n -= n
	for n > 0 {
		e := &s.ring[s.head]
		if e.n > n {
			e.n -= n
			break
		}
		n -= e.n
		s.used--
		if s.head++; s.head == len(s.ring) {
			s.head = 0
		}
	}
	return first
}

// push adds n slots that became free at t.
func (s *slots) push(t time.Duration, n int) {
	s.n += n
	if s.used > 0 {
		if e := &s.ring[s.index(s.used-1)]; e.at == t {
			e.n += n
			return
		}
	}
	if s.used == len(s.ring) {
		ring := make([]slot, 2*len(s.ring))
		for i := range s.used {
			ring[i] = s.ring[s.index(i)]
		}
		s.ring, s.head = ring, 0
	}
	s.ring[s.index(s.used)] = slot{t, n}
	s.used++
}

// join makes the oldest slots, those that became free at ready or earlier, one entry with
// the latest of their times. If no event is left that was ready before that, it makes no
// difference when exactly a slot became free. Otherwise a bound of a thousand slots would
// have a thousand entries after as many events, whatever is in flight.
func (s *slots) join(ready time.Duration) {
	for s.used > 1 {
		a, b := &s.ring[s.head], &s.ring[s.index(1)]
		if a.at > ready || b.at > ready {
			return
		}
		b.n += a.n
		b.at = max(a.at, b.at)
		s.head = s.index(1)
		s.used--
	}
}

func (s *slots) index(i int) int {
	if i += s.head; i >= len(s.ring) {
		i -= len(s.ring)
	}
	return i
}

// iterate returns an iterator over the slots in the order in which pop takes them.
func (s *slots) iterate() slotIterator { return slotIterator{s: s} }

// A slotIterator iterates over the free slots of a bound without taking them.
type slotIterator struct {
	s    *slots
	i    int // entry
	seen int // of its slots
}

// next returns when the next slot became free. At least one must be left.
func (g *slotIterator) next() time.Duration {
	e := &g.s.ring[g.s.index(g.i)]
	if g.seen++; g.seen == e.n {
		g.i, g.seen = g.i+1, 0
	}
	return e.at
}
