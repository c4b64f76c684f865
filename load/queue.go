package load

import (
	"math/bits"
	"time"
)

// A heap contains the sleeping streams, the one that is ready first on top. It is
// written for its one type: the interface calls of container/heap cost more than the
// comparison.
type heap []*stream

func (h *heap) push(s *stream) {
	*h = append(*h, s)
	a := *h
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if a[up].ready <= a[i].ready {
			return
		}
		a[up], a[i] = a[i], a[up]
		i = up
	}
}

func (h *heap) pop() *stream {
	a := *h
	top := a[0]
	n := len(a) - 1
	a[0], a[n] = a[n], nil
	a = a[:n]
	*h = a
	for i := 0; ; {
		least := i
		if l := 2*i + 1; l < n && a[l].ready < a[least].ready {
			least = l
		}
		if r := 2*i + 2; r < n && a[r].ready < a[least].ready {
			least = r
		}
		if least == i {
			return top
		}
		a[i], a[least] = a[least], a[i]
		i = least
	}
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
