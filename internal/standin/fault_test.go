package standin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"carronade/test/testkit/assert"
)

func TestStallLeft(t *testing.T) {
	t.Parallel()
	s := Stall{Every: 10 * time.Second, Length: time.Second}
	for _, test := range []struct {
		name        string
		stall       Stall
		since, want time.Duration
	}{
		{"none", Stall{}, time.Hour, 0},
		{"start", s, 0, 0},
		{"before the first", s, 500 * time.Millisecond, 0},
		{"just before", s, 10*time.Second - 1, 0},
		{"begins", s, 10 * time.Second, time.Second},
		{"within", s, 10*time.Second + 300*time.Millisecond, 700 * time.Millisecond},
		{"ends", s, 11 * time.Second, 0},
		{"the third", s, 30*time.Second + 999*time.Millisecond, time.Millisecond},
	} {
		assert.Equal(t, test.stall.Left(test.since), test.want, test.name)
	}
}

// listenWithFaults runs f in virtual time with both ends of a connection. The faults are on the end there.
func listenWithFaults(t *testing.T, delay time.Duration, stall Stall, f func(t *testing.T, here, there net.Conn)) {
	t.Helper()
	withDepartures(t, delay, stall, false, f)
}

func withDepartures(t *testing.T, delay time.Duration, stall Stall, timed bool, f func(t *testing.T, here, there net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		here, inner := net.Pipe()
		there := assert.Value(WithFaults(oneListener{inner}, delay, stall, timed, time.Now()).Accept())(t)
		defer here.Close()
		defer there.Close()
		f(t, here, there)
	})
}

type oneListener struct{ c net.Conn }

func (l oneListener) Accept() (net.Conn, error) { return l.c, nil }
func (l oneListener) Close() error              { return nil }
func (l oneListener) Addr() net.Addr            { return &net.TCPAddr{} }

func TestFaultDelay(t *testing.T) {
	t.Parallel()
	listenWithFaults(t, 5*time.Millisecond, Stall{}, func(t *testing.T, here, there net.Conn) {
		begin := time.Now()
		go func() {
			for range 3 {
				_, err := there.Write([]byte("x"))
				assert.True(t, err == nil, "%v", err)
				time.Sleep(2 * time.Millisecond)
			}
		}()
		var got []time.Duration
		var b [1]byte
		for range 3 {
			assert.Value(io.ReadFull(here, b[:]))(t)
			got = append(got, time.Since(begin))
		}
		// Each is delayed independently: they do not queue behind each other.
		want := []time.Duration{5 * time.Millisecond, 7 * time.Millisecond, 9 * time.Millisecond}
		assert.Same(t, got, want, "arrivals")
	})
}

func TestDelayClosed(t *testing.T) {
	t.Parallel()
	listenWithFaults(t, time.Hour, Stall{}, func(t *testing.T, _, there net.Conn) {
		for there.(*faultConn).waiting <= delayBytes {
			assert.Value(there.Write(make([]byte, 16<<20)))(t)
		}
		full := make(chan error)
		go func() { _, err := there.Write([]byte("one too many")); full <- err }()
		synctest.Wait()
		select {
		case err := <-full:
			t.Fatalf("got %v from a write beyond the bound, want it to block", err)
		default:
		}
		there.Close()
		err := <-full
		assert.True(t, errors.Is(err, net.ErrClosed), "got %v, want %v", err, net.ErrClosed)
	})
}

func TestStall(t *testing.T) {
	t.Parallel()
	stall := Stall{Every: 10 * time.Second, Length: time.Second}
	for _, test := range []struct {
		name  string
		delay time.Duration
		at    time.Duration // when the client writes
		want  time.Duration // when the answer arrives
	}{
		{"before", 0, time.Second, time.Second},
		{"within", 0, 10*time.Second + 200*time.Millisecond, 11 * time.Second},
		{"after", 0, 11 * time.Second, 11 * time.Second},
		{"the second", 0, 20 * time.Second, 21 * time.Second},
		{"the answer is due within", 100 * time.Millisecond, 9950 * time.Millisecond, 11 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			listenWithFaults(t, test.delay, stall, func(t *testing.T, here, there net.Conn) {
				begin := time.Now()
				go func() {
					var b [1]byte
					for {
						if _, err := there.Read(b[:]); err != nil {
							return
						}
						if _, err := there.Write(b[:]); err != nil {
							return
						}
					}
				}()
				time.Sleep(test.at)
				assert.Value(here.Write([]byte("x")))(t)
				var b [1]byte
				assert.Value(io.ReadFull(here, b[:]))(t)
				assert.Equal(t, time.Since(begin), test.want, "time of the answer")
			})
		})
	}
}

// TestParseStall parses valid and invalid stalls.
func TestParseStall(t *testing.T) {
	for _, test := range []struct {
		name, in string
		want     Stall
		err      string
	}{
		{"stall", "10s/1s", Stall{10 * time.Second, time.Second}, ""},
		{"stall without length", "10s", Stall{}, "want EVERY/LENGTH"},
		{"stall without unit", "10/1", Stall{}, "without a unit"},
		{"stall of bad length", "10s/x", Stall{}, `duration "x"`},
		{"stall longer than its period", "1s/1s", Stall{}, "below the 1 s"},
		{"stall of nothing", "1s/0s", Stall{}, "above 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := ParseStall(test.in)
			if test.err != "" {
				assert.ErrorHas(t, err, test.err)
				return
			}
			assert.True(t, err == nil && got == test.want, "got %v, %v; want %v", got, err, test.want)
		})
	}
}

func TestDice(t *testing.T) {
	const n = 100_000
	shares := []float64{0.2, 0.05}
	draw := func(seed uint64) (sides []int) {
		d := NewDice(seed, shares...)
		for range n {
			sides = append(sides, d.Draw())
		}
		return sides
	}
	sides := draw(1)
	assert.Same(t, draw(1), sides, "the same seed draws different sides (-first +second)")
	assert.True(t, !cmp.Equal(sides, draw(2)), "another seed draws the same sides")
	for i, share := range shares {
		got := 0.0
		for _, side := range sides {
			if side == i {
				got++
			}
		}
		// Six standard deviations of the binomial.
		want := n * share
		assert.True(t, math.Abs(got-want) <= 6*math.Sqrt(want*(1-share)), "side %d: got %v of %d draws, want about %v", i, got, n, want)
	}
	assert.Equal(t, NewDice(1).Draw(), -1, "a draw of dice without sides")
}

func TestBindFaults(t *testing.T) {
	var delay time.Duration
	var stall Stall
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	BindFaults(fs, &delay, &stall)
	assert.OK(t, fs.Parse([]string{"--delay", "5ms", "--stall", "10s/1s"}))
	want := (Stall{10 * time.Second, time.Second})
	assert.True(t, delay == 5*time.Millisecond && stall == want, "got %v and %v, want 5ms and %v", delay, stall, want)
}

type wrapper struct{ net.Conn }

func (w wrapper) NetConn() net.Conn { return w.Conn }

// TestDepartures: what is written leaves at the time of the last NotBefore, in order, plus the delay.
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

// A connection that is over is closed and counted. Errors are logged, but not ordinary ends, nor any after Close.
func TestConns(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var counted []int
	conns := Conns[int]{Log: &log, Ended: func(i int) { counted = append(counted, i) }}
	closed := func(here net.Conn) bool { _, err := here.Read(make([]byte, 1)); return errors.Is(err, io.EOF) }
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
	got := log.String()
	assert.True(t, strings.Count(got, "\n") == 1 && strings.Contains(got, ": a frame without a length\n"), "logged %q", got)
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
		assert.Same(t, addresses(test.line), test.want, test.name)
	}
}
