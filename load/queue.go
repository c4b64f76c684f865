package load

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// A heap contains the sleeping streams, the one that is ready first on top. It is
// written for its one type: the interface calls of container/heap cost more than the
// comparison. It has the times itself, and four streams below each, because thousands of
// streams are not in the processor's cache.
type heap []sleeper

// A sleeper is a sleeping stream.
type sleeper struct {
	ready  time.Duration // the stream's
	stream *stream
}

func (h *heap) push(s *stream) {
	*h = append(*h, sleeper{})
	a := *h
	i := len(a) - 1
	for i > 0 {
		up := (i - 1) / 4
		if a[up].ready <= s.ready {
			break
		}
		a[i] = a[up]
		i = up
	}
	a[i] = sleeper{s.ready, s}
}

func (h *heap) pop() *stream {
	a := *h
	top := a[0].stream
	n := len(a) - 1
	last := a[n]
	a[n] = sleeper{}
	a = a[:n]
	*h = a
	if n == 0 {
		return top
	}
	i := 0
	for {
		least, ready := i, last.ready
		for k := 4*i + 1; k <= 4*i+4 && k < n; k++ {
			if a[k].ready < ready {
				least, ready = k, a[k].ready
			}
		}
		if least == i {
			break
		}
		a[i] = a[least]
		i = least
	}
	a[i] = last
	return top
}

// A backlog contains the streams with a batch ready that wait for room on a lane, or on
// any lane of their thread.
type backlog struct {
	fifo[*stream]
	overflowAt time.Duration // when the first of them has more events waiting than fit into the buffer
}

// A fifo is a queue in a ring that grows.
type fifo[T any] struct {
	ring []T
	head int
	n    int
}

func (q *fifo[T]) push(v T) {
	q.reserve()
	q.ring[(q.head+q.n)%len(q.ring)] = v
	q.n++
}

// reserve makes room for one more element.
func (q *fifo[T]) reserve() {
	if q.n < len(q.ring) {
		return
	}
	ring := make([]T, max(8, 2*q.n))
	for i := range q.n {
		ring[i] = q.ring[(q.head+i)%len(q.ring)]
	}
	q.ring, q.head = ring, 0
}

// first is the next element that pop returns, valid until then.
func (q *fifo[T]) first() *T { return &q.ring[q.head] }

func (q *fifo[T]) pop() T {
	var zero T
	v := q.ring[q.head]
	q.ring[q.head] = zero
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	return v
}

// An indexSet is a set of small numbers, as bits.
type indexSet []uint64

func (s *indexSet) add(i int) {
	for i>>6 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[i>>6] |= 1 << (i & 63)
}

func (s indexSet) remove(i int) { s[i>>6] &^= 1 << (i & 63) }

// next returns the lowest member from i on; -1 if there is none.
func (s indexSet) next(i int) int {
	for w := i >> 6; w < len(s); w++ {
		rest := s[w]
		if w == i>>6 {
			rest &= ^uint64(0) << (i & 63)
		}
		if rest != 0 {
			return w<<6 + bits.TrailingZeros64(rest)
		}
	}
	return -1
}

// An inbox passes outcomes from the goroutines that read answers to the sending thread
// that owns the lane. The lock is held for one copy per slice of outcomes, never per
// event. Only the thread itself records them, in memory that no other thread uses.
type inbox struct {
	mu     sync.Mutex
	out    []Outcome
	ready  []readiness
	filled atomic.Bool

	spareOut   []Outcome // used only by the thread
	spareReady []readiness
}

// A readiness reports a lane (or, with lane -1, any stream) that may be tried again.
type readiness struct {
	lane int
	at   time.Duration
}

func (b *inbox) complete(out []Outcome) {
	b.mu.Lock()
	b.out = append(b.out, out...)
	b.filled.Store(true)
	b.mu.Unlock()
}

func (b *inbox) addReady(lane int, at time.Duration) {
	b.mu.Lock()
	b.ready = append(b.ready, readiness{lane, at})
	b.filled.Store(true)
	b.mu.Unlock()
}

// take returns what arrived since the last call. The slices are valid until the next
// call.
func (b *inbox) take() ([]Outcome, []readiness) {
	if !b.filled.Load() {
		return nil, nil
	}
	b.mu.Lock()
	out, ready := b.out, b.ready
	b.out, b.ready = b.spareOut[:0], b.spareReady[:0]
	b.filled.Store(false)
	b.mu.Unlock()
	b.spareOut, b.spareReady = out, ready
	return out, ready
}

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
