package standin

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestDrop(t *testing.T) {
	if !CanDrop() {
		t.Skip("this kernel drops nothing")
	}
	out, in := testkit.Pair(t)
	d := NewDropper(in)
	const rounds, size = 50, 100003
	go func() {
		for i := range rounds {
			_, _ = out.Write(bytes.Repeat([]byte{'x'}, size))
			_, _ = out.Write([]byte{byte(i)})
		}
	}()
	for i := range rounds {
		assert.OK(t, d.Drop(size))
		var b [1]byte
		if _, err := io.ReadFull(in, b[:]); err != nil || b[0] != byte(i) {
			t.Fatalf("after round %d: got %d, %v", i, b[0], err)
		}
	}
	five := []byte("12345")
	n := testing.AllocsPerRun(10, func() {
		_, _ = out.Write(five)
		_ = d.Drop(5)
	})
	assert.True(t, n == 0, "%v allocations, want none", n)
	out.Close()
	err := d.Drop(1)
	assert.True(t, errors.Is(err, io.ErrUnexpectedEOF), "at the end: got %v, want %v", err, io.ErrUnexpectedEOF)
}

func TestNewDropperWhereItCannot(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	assert.True(t, NewDropper(a) == nil, "a pipe's bytes are dropped in the kernel")
}
