package standin

import (
	"errors"
	"io"
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit/assert"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestStallLeft(t *testing.T) {
	t.Parallel()
	s := Stall{Every: 10 * time.Second, Length: time.Second}
	for _, test := range []struct {
		name  string
		stall Stall
		since time.Duration
		want  time.Duration
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
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.stall.Left(test.since), test.want)
		})
	}
}

// listenWithFaults runs f in virtual time with both ends of a connection. The faults are
// on the end there.
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
	t.Parallel()
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
	t.Parallel()
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
		if want := n * share; math.Abs(got-want) > 6*math.Sqrt(want*(1-share)) {
			t.Errorf("side %d: got %v of %d draws, want about %v", i, got, n, want)
		}
	}
	assert.Equal(t, NewDice(1).Draw(), -1, "a draw of dice without sides")
}

func TestBindFaults(t *testing.T) {
	t.Parallel()
	var delay time.Duration
	var stall Stall
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	BindFaults(fs, &delay, &stall)
	assert.OK(t, fs.Parse([]string{"--delay", "5ms", "--stall", "10s/1s"}))
	want := (Stall{10 * time.Second, time.Second})
	assert.True(t, delay == 5*time.Millisecond && stall == want, "got %v and %v, want 5ms and %v", delay, stall, want)
}
