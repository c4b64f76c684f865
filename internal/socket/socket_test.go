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
)

// pair returns both ends of a connection.
func pair(t testing.TB) (here, there *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
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
				if !direct && w.Direct() {
					t.Fatal("a wrapped connection is taken for a plain one")
				}
				w.Reset()
				if n := w.Add(pieces, tt.skip); n != len(tt.want) {
					t.Errorf("added %d bytes, want %d", n, len(tt.want))
				}
				if n, err := w.Write(true); n != len(tt.want) || err != nil {
					t.Fatalf("wrote %d bytes, %v", n, err)
				}
				if w.Began() <= 0 {
					t.Error("no time")
				}
				here.Close()
				got, err := io.ReadAll(there)
				if string(got) != tt.want || err != nil {
					t.Errorf("got %q, %v; want %q", got, err, tt.want)
				}
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
	if n := w.Add(many, 0); n != mostPieces {
		t.Errorf("added %d pieces, want %d", n, mostPieces)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		at += n
	}
	if at == len(sent) {
		t.Fatal("the socket never filled")
	}
	got := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(there)
		got <- b
	}()
	for at < len(sent) {
		w.Reset()
		w.Add([][]byte{sent}, at)
		n, err := w.Write(true)
		if err != nil || n == 0 {
			t.Fatalf("wrote %d, %v", n, err)
		}
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
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v, want a reset", err)
	}

	here, _ = pair(t)
	w = NewWriter(here, clock())
	here.SetWriteBuffer(4 << 10)
	time.AfterFunc(20*time.Millisecond, func() { here.Close() })
	for err = nil; err == nil; {
		w.Reset()
		w.Add([][]byte{make([]byte, 64<<10)}, 0)
		_, err = w.Write(true)
	}
	if !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want that it was closed", err)
	}
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
			if w.Slow() != tt.want {
				t.Errorf("after %v: slow is %v, want %v", tt.after, w.Slow(), tt.want)
			}
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
