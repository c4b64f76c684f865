package standin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit/assert"
)

type wrapper struct{ net.Conn }

func (w wrapper) NetConn() net.Conn { return w.Conn }

// TestDepartures: what is written leaves at the time of the last NotBefore, in order, plus the
// delay.
func TestDepartures(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, 3 * time.Millisecond} {
		withDepartures(t, delay, Stall{}, true, func(t *testing.T, here, there net.Conn) {
			begin := time.Now()
			d := DeparturesOf(wrapper{there})
			go func() {
				for _, ms := range []int{0, 20, 10, 40} {
					d.NotBefore(begin.Add(time.Duration(ms) * time.Millisecond))
					_, err := there.Write([]byte("x"))
					assert.True(t, err == nil, "%v", err)
				}
			}()
			var got []time.Duration
			var b [1]byte
			for range 4 {
				assert.Value(io.ReadFull(here, b[:]))(t)
				got = append(got, time.Since(begin)-delay)
			}
			want := []time.Duration{0, 20 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond}
			assert.Same(t, got, want, "arrivals")
			d.NotBefore(begin.Add(time.Second))
			d.Wait(t.Context())
			assert.Equal(t, time.Since(begin), time.Second+delay, "end of the wait")
			// The end of the connection does not overtake what is written now.
			go func() {
				_, err := there.Write([]byte("y"))
				assert.True(t, err == nil, "%v", err)
				there.Close()
			}()
			all, err := io.ReadAll(here)
			assert.True(t, err == nil && string(all) == "y", "got %q, %v after the wait, want y", all, err)
		})
	}
}

// TestWaitEnds: a wait ends with its context and with the connection.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	withDepartures(t, 0, Stall{}, true, func(t *testing.T, _, there net.Conn) {
		begin := time.Now()
		d := DeparturesOf(there)
		d.NotBefore(begin.Add(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if d.Wait(ctx); time.Since(begin) != time.Second {
			t.Errorf("waited %v, want until the end of the context", time.Since(begin))
		}
		time.AfterFunc(time.Second, func() { there.Close() })
		if d.Wait(t.Context()); time.Since(begin) != 2*time.Second {
			t.Errorf("waited %v, want until the end of the connection", time.Since(begin))
		}
	})
}

// TestWaitForNothing: a wait without anything to wait for ends at once.
func TestWaitForNothing(t *testing.T) {
	t.Parallel()
	withDepartures(t, 0, Stall{}, true, func(t *testing.T, _, there net.Conn) {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		DeparturesOf(there).Wait(ctx)
		assert.True(t, SleepUntil(ctx.Done(), time.Time{}) && time.Since(begin) == 0, "waited %v, want no time", time.Since(begin))
	})
}

// TestNoDepartures: other connections write at once.
func TestNoDepartures(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	d := DeparturesOf(wrapper{here})
	assert.Must(t, d == nil, "a plain connection has departures")
	d.NotBefore(time.Now().Add(time.Hour))
	d.Wait(t.Context())
	listenWithFaults(t, 0, Stall{Every: time.Hour, Length: time.Second}, func(t *testing.T, _, there net.Conn) {
		assert.True(t, DeparturesOf(there) == nil, "a connection that only stalls has departures")
	})
}

// A scarceListener has no descriptors left a few times, then a connection, and is closed then.
type scarceListener struct {
	net.Listener
	nc     net.Conn
	failed int
}

func (l *scarceListener) Accept() (net.Conn, error) {
	nc := l.nc
	switch {
	case l.failed < 3:
		l.failed++
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	case nc == nil:
		return nil, net.ErrClosed
	}
	l.nc = nil
	return nc, nil
}

func TestAcceptRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer here.Close()
		var got []net.Conn
		Accept(&scarceListener{nc: there}, func(nc net.Conn) { got = append(got, nc) })
		assert.True(t, len(got) == 1 && got[0] == there, "served %v, want one connection", got)
	})
}

// A connection that is over is closed and counted. Errors are logged, but not ordinary ends, nor
// any after Close.
func TestConns(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var counted []int
	conns := Conns[int]{Log: &log, Ended: func(i int) { counted = append(counted, i) }}
	closed := func(here net.Conn) bool {
		_, err := here.Read(make([]byte, 1))
		return errors.Is(err, io.EOF)
	}
	var ends []func(error)
	var clients []net.Conn
	for i := range 4 {
		here, there := net.Pipe()
		defer here.Close()
		clients = append(clients, here)
		ends = append(ends, conns.Enter(there, i))
	}
	ends[0](io.EOF)
	ends[1](errors.New("a frame without a length"))
	assert.True(t, closed(clients[0]) && closed(clients[1]) && len(conns.Open) == 2 && len(counted) == 2,
		"%d are open, and %d were counted; want 2 and 2", len(conns.Open), len(counted))
	conns.Close()
	assert.True(t, closed(clients[2]) && closed(clients[3]), "Close leaves connections open")
	ends[2](errors.New("a frame that was cut off"))
	ends[3](net.ErrClosed)
	conns.Serving.Wait()
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, ": a frame without a length\n") {
		t.Errorf("logged %q", got)
	}
	late, there := net.Pipe()
	defer late.Close()
	assert.True(t, conns.Enter(there, 4) == nil && closed(late), "a connection is served after Close")
}

func TestAddresses(t *testing.T) {
	for _, test := range []struct {
		name, line string
		want       map[string]string
	}{
		{"one", "127.0.0.1:9092", map[string]string{"": "127.0.0.1:9092"}},
		{"several", "127.0.0.1:5555, udp 127.0.0.1:5556, tls [::1]:5554", map[string]string{
			"": "127.0.0.1:5555", "udp": "127.0.0.1:5556", "tls": "[::1]:5554",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Same(t, addresses(test.line), test.want)
		})
	}
}
