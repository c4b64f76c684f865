package socket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/testkit/assert"
)

// pair returns both ends of a connection.
func pair(t testing.TB) (here, there *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	assert.OK(t, err)
	defer ln.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	assert.OK(t, err)
	other, err := ln.Accept()
	assert.OK(t, err)
	t.Cleanup(func() { conn.Close(); other.Close() })
	return conn.(*net.TCPConn), other.(*net.TCPConn)
}

func clock() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) + 1 }
}

// Added bytes arrive in order, without the skipped ones, on a plain connection and on
// another.
func TestWritePieces(t *testing.T) {
	pieces := [][]byte{[]byte("abc"), []byte("d"), nil, []byte("efgh")}
	for _, tt := range []struct {
		name string
		skip int
		want string
	}{
		{"all", 0, "abcdefgh"},
		{"within the first", 2, "cdefgh"},
		{"at a seam", 3, "defgh"},
		{"within the last", 6, "gh"},
	} {
		for _, direct := range []bool{true, false} {
			t.Run(tt.name, func(t *testing.T) {
				here, there := pair(t)
				var conn net.Conn = here
				if !direct {
					conn = struct{ net.Conn }{here}
				}
				w := NewWriter(conn, clock())
				assert.Must(t, direct || !w.Direct(), "a wrapped connection is taken for a plain one")
				w.Reset()
				assert.Equal(t, w.Add(pieces, tt.skip), len(tt.want), "added bytes")
				if n, err := w.Write(true); n != len(tt.want) || err != nil {
					t.Fatalf("wrote %d bytes, %v", n, err)
				}
				assert.True(t, w.Began() > 0, "no time")
				here.Close()
				got, err := io.ReadAll(there)
				assert.True(t, string(got) == tt.want && err == nil, "got %q, %v; want %q", got, err, tt.want)
			})
		}
	}
}

// A vector accepts no more pieces than the kernel.
func TestAddIsBounded(t *testing.T) {
	here, _ := pair(t)
	w := NewWriter(here, clock())
	many := make([][]byte, mostPieces+5)
	for i := range many {
		many[i] = []byte("x")
	}
	assert.Equal(t, w.Add(many, 0), mostPieces, "added pieces")
}

// Without wait, a full socket accepts nothing and Write does not block; with it, the
// rest is written when the other side reads.
func TestFullSocket(t *testing.T) {
	here, there := pair(t)
	w := NewWriter(here, clock())
	if !w.Direct() {
		t.Skip("every write blocks here")
	}
	sent := bytes.Repeat([]byte("0123456789"), 2<<20)
	at := 0
	for {
		w.Reset()
		w.Add([][]byte{sent}, at)
		n, err := w.Write(false)
		assert.OK(t, err)
		if n == 0 {
			break
		}
		at += n
	}
	assert.Must(t, at != len(sent), "the socket never filled")
	got := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(there)
		got <- b
	}()
	for at < len(sent) {
		w.Reset()
		w.Add([][]byte{sent}, at)
		n, err := w.Write(true)
		assert.Must(t, err == nil && n != 0, "wrote %d, %v", n, err)
		at += n
	}
	here.Close()
	if b := <-got; !bytes.Equal(b, sent) {
		t.Errorf("got %d bytes, not the %d written", len(b), len(sent))
	}
}

// A write to a connection that is over fails, even while it waits.
func TestBrokenConnection(t *testing.T) {
	here, there := pair(t)
	w := NewWriter(here, clock())
	there.SetLinger(0)
	there.Close()
	var err error
	deadline := time.Now().Add(10 * time.Second)
	for err == nil && time.Now().Before(deadline) {
		w.Reset()
		w.Add([][]byte{make([]byte, 64<<10)}, 0)
		_, err = w.Write(true)
	}
	assert.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE), "got %v, want a reset", err)

	here, _ = pair(t)
	w = NewWriter(here, clock())
	here.SetWriteBuffer(4 << 10)
	time.AfterFunc(20*time.Millisecond, func() { here.Close() })
	for err = nil; err == nil; {
		w.Reset()
		w.Add([][]byte{make([]byte, 64<<10)}, 0)
		_, err = w.Write(true)
	}
	assert.True(t, errors.Is(err, net.ErrClosed), "got %v, want that it was closed", err)
}

// A blocking write that waited for the other side is slow.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		w := NewWriter(here, clock())
		for _, tt := range []struct {
			after time.Duration
			want  bool
		}{{20 * time.Millisecond, true}, {0, false}} {
			go func() {
				time.Sleep(tt.after)
				io.CopyN(io.Discard, there, 3)
			}()
			w.Reset()
			w.Add([][]byte{[]byte("abc")}, 0)
			if n, err := w.Write(false); n != 3 || err != nil {
				t.Fatalf("wrote %d, %v", n, err)
			}
			assert.Equal(t, w.Slow(), tt.want, "after %v: slow", tt.after)
		}
	})
}

func TestWriteAllocatesNothing(t *testing.T) {
	here, there := pair(t)
	go io.Copy(io.Discard, there)
	w := NewWriter(here, clock())
	if !w.Direct() {
		t.Skip("net.Buffers are copied here")
	}
	segs := [][]byte{[]byte("abc"), []byte("def")}
	if n := testing.AllocsPerRun(100, func() {
		w.Reset()
		w.Add(segs, 0)
		w.Write(true)
	}); n != 0 {
		t.Errorf("%v allocations per write", n)
	}
}
