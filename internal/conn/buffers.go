package conn

import (
	"math/bits"
	"sync"
	"unsafe"
)

// A Pool lends slices. Their capacity is a power of two, of at least 1<<Least and at most 1<<Most
// elements; larger ones are not kept. It is safe for concurrent use.
type Pool[T any] struct {
	Least, Most int // at most mostClass

	// free has the slices that are not in use, by their class, the capacity as log2: pointers to
	// their first element, since storing a slice would allocate memory. The runtime keeps them by
	// processor, and frees those that stay unused for some collections.
	free [mostClass + 1]sync.Pool
}

const mostClass = 23

// class returns the smallest class with at least n elements.
func (p *Pool[T]) class(n int) int { return max(p.Least, bits.Len(uint(max(n, 1)-1))) }

// Borrow returns an empty slice with a capacity of at least n. Its memory has what was in it before.
func (p *Pool[T]) Borrow(n int) []T {
	c := p.class(n)
	if c > p.Most {
		return make([]T, 0, n)
	}
	if first, ok := p.free[c].Get().(*T); ok {
		return unsafe.Slice(first, 1<<c)[:0]
	}
	return make([]T, 0, 1<<c)
}

// Return gives back a slice, which must no longer be used. One that Borrow did not return is left
// to the garbage collector; nil has no effect.
func (p *Pool[T]) Return(s []T) {
	c := p.class(cap(s))
	if c <= p.Most && cap(s) == 1<<c {
		p.free[c].Put(unsafe.SliceData(s[:cap(s)]))
	}
}

// buffers are those of all connections, from 1 KiB to 8 MiB.
var buffers = Pool[byte]{Least: 10, Most: mostClass}

// Borrow returns an empty buffer with a capacity of at least n bytes.
func Borrow(n int) []byte { return buffers.Borrow(n) }

// Return gives back a buffer of Borrow, which must no longer be used.
func Return(b []byte) { buffers.Return(b) }

// Grow returns a buffer with the same contents and room for n more bytes: b itself, or a
// larger one, and b is given back.
func Grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	larger := append(Borrow(len(b)+n), b...)
	Return(b)
	return larger
}
