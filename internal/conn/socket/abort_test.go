package socket

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"runtime"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
			go func() {
				done <- tls.Server(there, &tls.Config{Certificates: srv.TLS.Certificates}).Handshake()
			}()
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
	}{
		{"plain", func(c net.Conn) net.Conn { return c }},
		{"wrapped", func(c net.Conn) net.Conn { return struct{ net.Conn }{c} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ours, theirs := testkit.Pair(t)
			s := NewStamped(tt.wrap(ours))
			b := make([]byte, 10)
			got := make(chan string, 1)
			go func() {
				n, _ := s.Read(b)
				got <- string(b[:n])
			}()
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
