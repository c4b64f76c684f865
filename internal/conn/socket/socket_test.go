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

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func clock() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) + 1 }
}

// Added bytes arrive in order, without the skipped ones, on a plain connection and on another.
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
				here, there := testkit.Pair(t)
				var conn net.Conn = here
				if !direct {
					conn = struct{ net.Conn }{here}
				}
				w := NewWriter(conn, clock())
				assert.Must(t, direct || !w.Direct(), "a wrapped connection is taken for a plain one")
				w.Reset()
				assert.Equal(t, w.Add(pieces, tt.skip), len(tt.want), "bytes added")
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
	here, _ := testkit.Pair(t)
	w := NewWriter(here, clock())
	many := make([][]byte, mostPieces+5)
	for i := range many {
		many[i] = []byte("x")
	}
	assert.Equal(t, w.Add(many, 0), mostPieces, "pieces added")
}

// Without wait, a full socket accepts nothing and Write does not block; with it, the
// rest is written when the other side reads.
func TestFullSocket(t *testing.T) {
	here, there := testkit.Pair(t)
	w := NewWriter(here, clock())
	if !w.Direct() {
		t.Skip("every write blocks here")
	}
	sent := bytes.Repeat([]byte("0123456789"), 2<<20)
	at := 0
	for {
		w.Reset()
		w.Add([][]byte{sent}, at)
		n := assert.Value(w.Write(false))(t)
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
	b := <-got
	assert.True(t, bytes.Equal(b, sent), "got %d bytes, not the %d written", len(b), len(sent))
}

// A write to a connection that is over fails, even while it waits.
func TestBrokenConnection(t *testing.T) {
	here, there := testkit.Pair(t)
	w := NewWriter(here, clock())
	there.SetLinger(0)
	there.Close()
	var err error
	testkit.Until(t, "a write fails", func() bool {
		w.Reset()
		w.Add([][]byte{make([]byte, 64<<10)}, 0)
		_, err = w.Write(true)
		return err != nil
	})
	assert.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE), "got %v, want a reset", err)

	here, _ = testkit.Pair(t)
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
			n, err := w.Write(false)
			assert.Must(t, n == 3 && err == nil, "wrote %d, %v", n, err)
			assert.Equal(t, w.Slow(), tt.want, "slow after %v", tt.after)
		}
	})
}

func TestWriteAllocatesNothing(t *testing.T) {
	here, there := testkit.Pair(t)
	go io.Copy(io.Discard, there)
	w := NewWriter(here, clock())
	if !w.Direct() {
		t.Skip("net.Buffers are copied here")
	}
	segs := [][]byte{[]byte("abc"), []byte("def")}
	n := testing.AllocsPerRun(100, func() {
		w.Reset()
		w.Add(segs, 0)
		w.Write(true)
	})
	assert.Equal(t, n, 0, "allocations per write")
}
