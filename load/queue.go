package load

import (
	"math/bits"
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
