package socket

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"runtime"
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

// Without wait, a full socket accepts nothing and Write does not block; with it, the rest is written when the other side reads.
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
	go func() { b, _ := io.ReadAll(there); got <- b }()
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
			go func() { time.Sleep(tt.after); io.CopyN(io.Discard, there, 3) }()
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

// TestAbort aborts connections, and checks what the other side can read.
func TestAbort(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	for _, test := range []struct {
		name string
		over func(here, there *net.TCPConn) net.Conn
	}{
		{"plain", func(here, _ *net.TCPConn) net.Conn { return here }},
		{"TLS", func(here, there *net.TCPConn) net.Conn {
			done := make(chan error, 1)
			go func() { done <- tls.Server(there, &tls.Config{Certificates: srv.TLS.Certificates}).Handshake() }()
			c := tls.Client(here, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test's own
			assert.OK(t, c.Handshake())
			assert.OK(t, <-done)
			return c
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			here, there := testkit.Pair(t)
			nc := test.over(here, there)
			Abort(nc)
			_, err := here.Write([]byte{1})
			assert.True(t, err != nil, "the connection is open, want it closed")
			assert.OK(t, there.SetReadDeadline(time.Now().Add(time.Minute)))
			n, err := there.Read(make([]byte, 100))
			assert.True(t, n <= 0 && err != nil, "got %d bytes, %v: want none, and the end", n, err)
		})
	}
}

// TestMain keeps a connection with timestamps open. The kernel enables timestamps with the first such
// connection and disables them with the last, both with some delay: a test that begins while the connections
// of another one close would see timestamps come and go.
func TestMain(m *testing.M) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	guard, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		panic(err)
	}
	NewStamped(guard)
	os.Exit(m.Run())
}

// A late reader learns when the bytes arrived, not when it read them, even for several reads of one answer.
func TestStampedLate(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("arrivals are not known here")
	}
	ours, theirs := testkit.Pair(t)
	s := NewStamped(ours)
	start := time.Now()
	now := func() time.Duration { return time.Since(start) }
	b := make([]byte, 2)
	// The kernel enables timestamps with some delay.
	for known := false; !known; {
		asked := now()
		assert.Value(theirs.Write(make([]byte, 2)))(t)
		assert.Value(io.ReadFull(s, b))(t)
		known = s.Arrived(asked, now()) > 0
		assert.Must(t, now() <= time.Minute, "the kernel reports no arrival times")
	}
	asked := now()
	assert.Value(theirs.Write(make([]byte, 6)))(t)
	for s.Empty() { // until it has arrived
		<-time.After(time.Millisecond)
	}
	arrived := now()
	<-time.After(200 * time.Millisecond) // a delay that must not show
	for range 3 {
		n, err := s.Read(b)
		assert.Must(t, n == 2 && err == nil, "read %d bytes: %v", n, err)
		read := now()
		at := s.Arrived(-time.Hour, read)
		late := now() - read // a pause between two clocks makes the arrival earlier
		assert.True(t, at >= asked-late && at <= arrived+100*time.Millisecond && at <= read-100*time.Millisecond,
			"arrived at %v, between %v and %v by its sender, read at %v (%v later than that)", at, asked, arrived, read, late)
	}
	assert.Equal(t, s.Arrived(now(), now()), 0, "an arrival before the request")
	assert.Equal(t, s.Arrived(0, -time.Hour), 0, "an arrival by a clock that was set")
}

// A read waits, obeys the deadline, and ends with the connection, like the Read of the connection.
func TestStampedReads(t *testing.T) {
	for _, tt := range []struct {
		name string
		wrap func(net.Conn) net.Conn
	}{{"plain", func(c net.Conn) net.Conn { return c }}, {"wrapped", func(c net.Conn) net.Conn { return struct{ net.Conn }{c} }}} {
		t.Run(tt.name, func(t *testing.T) {
			ours, theirs := testkit.Pair(t)
			s := NewStamped(tt.wrap(ours))
			b := make([]byte, 10)
			got := make(chan string, 1)
			go func() { n, _ := s.Read(b); got <- string(b[:n]) }()
			assert.Value(theirs.Write([]byte("later")))(t)
			assert.Equal(t, <-got, "later")
			at := s.Arrived(0, time.Hour)
			assert.True(t, tt.name != "wrapped" || at == 0, "arrived at %v, want not known", at)
			assert.OK(t, ours.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
			_, err := s.Read(b)
			assert.True(t, errors.Is(err, os.ErrDeadlineExceeded), "got %v at the deadline", err)
			assert.OK(t, ours.SetReadDeadline(time.Time{}))
			theirs.Close()
			n, err := s.Read(b)
			assert.True(t, n == 0 && errors.Is(err, io.EOF), "got %d bytes, %v at the end", n, err)
		})
	}
}

func TestStampedAllocatesNothing(t *testing.T) {
	ours, theirs := testkit.Pair(t)
	s := NewStamped(ours)
	b := make([]byte, 10)
	n := testing.AllocsPerRun(100, func() {
		assert.Value(theirs.Write(b[:1]))(t)
		assert.Value(s.Read(b))(t)
		s.Arrived(0, time.Hour)
	})
	assert.True(t, n <= 0, "%v allocations per read", n)
}
