package standin

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type wrapper struct{ net.Conn }

func (w wrapper) NetConn() net.Conn { return w.Conn }

// TestHold: what is written leaves at the time of the last Hold, in order, plus the
// delay.
func TestHold(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, 3 * time.Millisecond} {
		withHolds(t, delay, Stall{}, true, func(t *testing.T, here, there net.Conn) {
			begin := time.Now()
			h := HolderOf(wrapper{there})
			go func() {
				for _, ms := range []int{0, 20, 10, 40} {
					h.Hold(begin.Add(time.Duration(ms) * time.Millisecond))
					if _, err := there.Write([]byte("x")); err != nil {
						t.Error(err)
					}
				}
			}()
			var got []time.Duration
			var b [1]byte
			for range 4 {
				if _, err := io.ReadFull(here, b[:]); err != nil {
					t.Fatal(err)
				}
				got = append(got, time.Since(begin)-delay)
			}
			want := []time.Duration{0, 20 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("arrivals (-want +got):\n%s", diff)
			}
			h.Hold(begin.Add(time.Second))
			h.Wait(t.Context())
			if got := time.Since(begin); got != time.Second+delay {
				t.Errorf("waited until %v, want 1s and the delay", got)
			}
			// The end of the connection does not overtake what is written now.
			go func() {
				if _, err := there.Write([]byte("y")); err != nil {
					t.Error(err)
				}
				there.Close()
			}()
			if all, err := io.ReadAll(here); err != nil || string(all) != "y" {
				t.Errorf("got %q, %v after the wait, want y", all, err)
			}
		})
	}
}

// TestWaitEnds: a wait ends with its context and with the connection.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	withHolds(t, 0, Stall{}, true, func(t *testing.T, _, there net.Conn) {
		begin := time.Now()
		h := HolderOf(there)
		h.Hold(begin.Add(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if h.Wait(ctx); time.Since(begin) != time.Second {
			t.Errorf("waited %v, want until the end of the context", time.Since(begin))
		}
		time.AfterFunc(time.Second, func() { there.Close() })
		if h.Wait(t.Context()); time.Since(begin) != 2*time.Second {
			t.Errorf("waited %v, want until the end of the connection", time.Since(begin))
		}
	})
}

// TestWaitForNothing: a wait without anything to wait for ends at once.
func TestWaitForNothing(t *testing.T) {
	t.Parallel()
	withHolds(t, 0, Stall{}, true, func(t *testing.T, _, there net.Conn) {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		HolderOf(there).Wait(ctx)
		if !SleepUntil(ctx.Done(), time.Time{}) || time.Since(begin) != 0 {
			t.Errorf("waited %v, want no time", time.Since(begin))
		}
	})
}

// TestNoHolder: other connections hold nothing back.
func TestNoHolder(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	h := HolderOf(wrapper{here})
	if h != nil {
		t.Fatal("a plain connection has a holder")
	}
	h.Hold(time.Now().Add(time.Hour))
	h.Wait(t.Context())
	listenWithFaults(t, 0, Stall{Every: time.Hour, Length: time.Second}, func(t *testing.T, _, there net.Conn) {
		if HolderOf(there) != nil {
			t.Error("a connection that only stalls has a holder")
		}
	})
}
