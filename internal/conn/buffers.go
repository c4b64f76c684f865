package conn

import (
	"math/bits"
	"sync"
	"unsafe"
)

// Borrowed buffers have the size of a class: a power of two, from leastClass to mostClass
// in bytes (log2). Larger ones are not kept.
const (
	leastClass = 10
	mostClass  = 23
)

// free has the buffers that are not in use, by their class: pointers to their first byte,
// since storing a slice would allocate memory. The runtime keeps them by processor, and
// frees those that stay unused for some collections.
var free [mostClass + 1]sync.Pool

// class returns the smallest class with at least n bytes.
func class(n int) int { return max(leastClass, bits.Len(uint(max(n, 1)-1))) }

// Borrow returns an empty buffer with a capacity of at least n bytes. It is safe for
// concurrent use.
func Borrow(n int) []byte {
	c := class(n)
	if c > mostClass {
		return make([]byte, 0, n)
	}
	if first, ok := free[c].Get().(*byte); ok {
		return unsafe.Slice(first, 1<<c)[:0]
	}
	return make([]byte, 0, 1<<c)
}

// Return gives back a buffer, which must no longer be used. One that Borrow did not return
// is left to the garbage collector; nil has no effect.
func Return(b []byte) {
	c := class(cap(b))
	if c <= mostClass && cap(b) == 1<<c {
		free[c].Put(unsafe.SliceData(b[:cap(b)]))
	}
}

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
