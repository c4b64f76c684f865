package standin

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	"carronade/internal/testkit/assert"
)

// dropPair returns the two ends of a connection.
func dropPair(t *testing.T) (in, out net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	assert.OK(t, err)
	defer ln.Close()
	if out, err = net.Dial("tcp", ln.Addr().String()); err != nil { //nolint:noctx // a test
		t.Fatal(err)
	}
	if in, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); out.Close() })
	return in, out
}

func TestDrop(t *testing.T) {
	if !CanDrop() {
		t.Skip("this kernel drops nothing")
	}
	in, out := dropPair(t)
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
	if n := testing.AllocsPerRun(10, func() {
		_, _ = out.Write(five)
		_ = d.Drop(5)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
	out.Close()
	if err := d.Drop(1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("at the end: got %v, want %v", err, io.ErrUnexpectedEOF)
	}
}

func TestNewDropperWhereItCannot(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	assert.True(t, NewDropper(a) == nil, "a pipe's bytes are dropped in the kernel")
}
