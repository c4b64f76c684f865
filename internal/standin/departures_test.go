package standin

import (
	"context"
	"io"
	"net"
	"testing"
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
