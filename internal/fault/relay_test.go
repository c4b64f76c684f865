package fault

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/testkit"
	"carronade/internal/testkit/assert"
)

func TestMain(m *testing.M) {
	Hook()
	os.Exit(m.Run())
}

// echo starts a server that sends back what it gets, and returns its address.
func echo(t testing.TB) string {
	t.Helper()
	return testkit.Listen(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c) })
}

func start(t testing.TB) *Relay {
	t.Helper()
	r, err := StartRelay(t.Context())
	assert.OK(t, err)
	t.Cleanup(r.Close)
	return r
}

// TestRelay: all bytes arrive in their order while the delay changes, and the end does, too.
func TestRelay(t *testing.T) {
	t.Parallel()
	r, addr := start(t), echo(t)
	c, err := r.Dial(t.Context(), addr)
	assert.OK(t, err)
	defer c.Close()
	sent := make([]byte, 8<<20)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() {
		for i, d := range []time.Duration{0, 20 * time.Millisecond, 5 * time.Millisecond, 0} {
			if err := r.Delay(t.Context(), d); err != nil {
				t.Error(err)
			}
			if _, err := c.Write(sent[i*len(sent)/4 : (i+1)*len(sent)/4]); err != nil {
				t.Error(err)
			}
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Error(err)
		}
	})
	got, err := io.ReadAll(c)
	assert.OK(t, err)
	assert.True(t, bytes.Equal(got, sent), "%d bytes arrived, which differ from the %d that were sent", len(got), len(sent))
	assert.Equal(t, r.Connections(), 1, "connections")
}

// TestDelay: a round trip takes at least as long as the delay, and no longer when it has ended.
func TestDelay(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	r, addr := start(t), echo(t)
	c, err := r.Dial(t.Context(), addr)
	assert.OK(t, err)
	defer c.Close()
	trip := func() time.Duration {
		began := time.Now()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	least := func(n int) time.Duration {
		best := time.Hour
		for range n {
			best = min(best, trip())
		}
		return best
	}
	if got := least(5); got >= delay {
		t.Errorf("a round trip takes %v before the delay", got)
	}
	assert.OK(t, r.Delay(t.Context(), delay))
	if got := trip(); got < delay {
		t.Errorf("a round trip takes %v, want at least %v", got, delay)
	}
	began := time.Now()
	d, err := r.Dial(t.Context(), addr)
	assert.OK(t, err)
	d.Close()
	if got := time.Since(began); got < delay {
		t.Errorf("a connection takes %v, want at least %v", got, delay)
	}
	assert.OK(t, r.Delay(t.Context(), 0))
	if got := least(5); got >= delay {
		t.Errorf("a round trip takes %v after the delay", got)
	}
}

// TestDialErrors: errors are those of a connection without a relay, and strangers get none.
func TestDialErrors(t *testing.T) {
	t.Parallel()
	r := start(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	assert.OK(t, err)
	closed := ln.Addr().String()
	ln.Close()
	_, err = r.Dial(t.Context(), closed)
	assert.True(t, errors.Is(err, syscall.ECONNREFUSED), "got %v, want that the connection was refused", err)
	if _, direct := net.Dial("tcp", closed); err == nil || err.Error() != direct.Error() {
		t.Errorf("got %q, without the relay it is %q", err, direct)
	}
	if _, err = r.Dial(t.Context(), "no-such-host.invalid:1"); err == nil {
		t.Error("a name that does not exist was connected to")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = r.Dial(ctx, closed); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was canceled", err)
	}
	if _, err := (&Relay{addr: r.addr, token: "another"}).Dial(t.Context(), echo(t)); err == nil {
		t.Error("another program can connect through the relay")
	}
	assert.Equal(t, r.Connections(), 0, "connections")
}

// resetting starts a system that answers the first byte of a connection, and then resets it.
func resetting(t *testing.T, answer string) (addr string) {
	t.Helper()
	return testkit.Listen(t, func(c *net.TCPConn) {
		_, _ = io.ReadFull(c, make([]byte, 1))
		_, _ = io.WriteString(c, answer)
		_ = c.SetLinger(0)
	})
}

// TestReset: a connection that the system resets is reset for the run.
func TestReset(t *testing.T) {
	t.Parallel()
	r := start(t)
	c, err := r.Dial(t.Context(), resetting(t, ""))
	assert.OK(t, err)
	defer c.Close()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
}

// TestResetInOrder: what the system sent before a reset arrives before it, and both later by the delay.
func TestResetInOrder(t *testing.T) {
	t.Parallel()
	r := start(t)
	assert.OK(t, r.Delay(t.Context(), 200*time.Millisecond))
	c, err := r.Dial(t.Context(), resetting(t, "the last words"))
	assert.OK(t, err)
	defer c.Close()
	began := time.Now()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if string(got) != "the last words" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %q, %v, want the last words and a reset", got, err)
	}
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("the reset came after %v", took)
	}
	assert.Equal(t, r.Late(), 0, "late by before an answer")
	if err := r.Delay(t.Context(), 0); err != nil || r.Late() <= 0 {
		t.Errorf("late by %v, %v: no piece is passed on exactly in time", r.Late(), err)
	}
}

// TestGivenUp: nothing is connected for a run that gave up.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	assert.OK(t, err)
	defer ln.Close()
	s := &server{token: "t"}
	s.delay.Store(int64(time.Hour))
	over := make(chan struct{})
	go func() {
		defer close(over)
		if c, err := ln.Accept(); err == nil {
			s.connect(c.(*net.TCPConn))
		}
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	assert.OK(t, err)
	if _, err := c.Write([]byte("t 127.0.0.1:1\n")); err != nil {
		t.Fatal(err)
	}
	c.Close()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}

// TestEnd: a relay that has ended says so.
func TestEnd(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.Close()
	if err := r.Delay(t.Context(), time.Second); err == nil {
		t.Error("a relay that has ended takes a delay")
	}
	if _, err := r.Dial(t.Context(), "127.0.0.1:1"); err == nil {
		t.Error("a relay that has ended connects")
	}
	(*Relay)(nil).Close()
}

// TestKilled: a relay that ended by itself says how, and connecting fails with an error that is not the
// target's.
func TestKilled(t *testing.T) {
	t.Parallel()
	r := start(t)
	assert.Equal(t, r.Ended(), "", "it has ended")
	r.child.Kill()
	<-r.Died()
	if got, want := r.Ended(), "signal: killed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := r.Dial(t.Context(), "127.0.0.1:1"); !errors.Is(err, ErrRelay) || errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want an error of the relay", err)
	}
	r.Close()
	if got := r.Ended(); got == "" {
		t.Error("after Close it ended as wanted")
	}
	other := start(t)
	if other.Close(); other.Ended() != "" {
		t.Errorf("a relay that was closed ended by itself: %s", other.Ended())
	}
}

// TestLateAnswer: an answer that comes too late is not taken for that of the next command.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	r := &Relay{stdin: discard{}, said: make(chan answer, 3), ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Delay(ctx, time.Second); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want that it was canceled", err)
	}
	r.said <- answer{Number: 1, Late: 7}
	r.said <- answer{Number: 2, Late: 9}
	assert.OK(t, r.Delay(t.Context(), 0))
	assert.Equal(t, r.Late(), 9, "it was late by ns, want that of the second answer: 9")
	r.said <- answer{Error: "no"}
	if err := r.Delay(t.Context(), 0); err == nil || err.Error() != "delay connections: no" {
		t.Errorf("got %v", err)
	}
}

// discard is where commands go that nothing reads.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Close() error                { return nil }

// TestWaiting: above the bound, its own or that of all connections, nothing more is taken until
// something was written. A direction with nothing that waits takes a piece in any case.
func TestWaiting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		others int64
		bytes  int
		waits  bool
	}{
		{"its own bound", 0, mostWaiting, true},
		{"that of all", mostInAll, 1, true},
		{"nothing waits", mostInAll, 0, false},
		{"below both", mostInAll - 2, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pipe{all: new(paths)}
				p.change.L = &p.mu
				p.all.bytes.Store(tt.others)
				assert.Must(t, p.put(piece{data: make([]byte, tt.bytes)}), "it is broken")
				taken := false
				go func() {
					p.put(piece{data: make([]byte, 1)})
					taken = true
				}()
				synctest.Wait()
				assert.True(t, taken != tt.waits, "it was taken: %v", taken)
				p.mu.Lock()
				p.bytes = 0
				p.change.Broadcast()
				p.mu.Unlock()
				synctest.Wait()
				assert.True(t, taken, "it waits forever")
			})
		})
	}
}
