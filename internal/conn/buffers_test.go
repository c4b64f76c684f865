package conn

import (
	"bytes"
	"testing"

	"carronade/test/testkit/assert"
)

// A borrowed buffer is large enough, and its memory is used again.
func TestBorrow(t *testing.T) {
	for _, n := range []int{0, 1, 1 << buffers.Least, 1<<buffers.Least + 1, 5000, 1 << mostClass, 1<<mostClass + 1} {
		b := Borrow(n)
		assert.True(t, len(b) == 0 && cap(b) >= n, "borrowed %d bytes: length %d, capacity %d", n, len(b), cap(b))
		assert.True(t, n > 1<<mostClass || cap(b) <= max(2*n, 1<<buffers.Least),
			"borrowed %d bytes: a capacity of %d is more than twice that", n, cap(b))
		Return(b)
	}
	Return(nil)
	Return(make([]byte, 0, 3000)) // not of a class: Borrow must not return it
	assert.Equal(t, cap(Borrow(2100)), 4096, "the capacity")
}

// Grow keeps the contents.
func TestGrow(t *testing.T) {
	b := append(Borrow(1000), "contents"...)
	same := Grow(b, cap(b)-len(b))
	assert.True(t, cap(same) == cap(b), "the capacity changed from %d to %d", cap(b), cap(same))
	if larger := Grow(b, 10_000); cap(larger)-len(larger) < 10_000 || !bytes.Equal(larger, []byte("contents")) {
		t.Errorf("got %q with a capacity of %d", larger, cap(larger))
	}
}

// Borrowing and returning allocates nothing.
func TestBorrowAllocatesNothing(t *testing.T) {
	Return(Borrow(3000))
	assert.Equal(t, testing.AllocsPerRun(100, func() { Return(Borrow(3000)) }), 0, "allocations")
}
