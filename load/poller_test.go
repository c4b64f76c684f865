package load

import (
	"sync"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// pollTarget is a target that completes batches only from within Wait.
type pollTarget struct {
	instantTarget
	mu          sync.Mutex
	fired       []Outcome
	woken       chan struct{}
	asked       int
	ready, left bool
	waits       int
}

func (a *pollTarget) Start(s Sink)     { a.sink = s }
func (a *pollTarget) Route(int32) Lane { return a }

func (a *pollTarget) Fire(batches []Batch) int {
	now := a.sink.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range batches {
		a.fired = append(a.fired, Outcome{Batch: batches[i], Sent: now, Done: now, Acked: batches[i].Events, Place: -1})
	}
	return len(batches)
}

func (a *pollTarget) Flush() {}

func (a *pollTarget) Poll(t, of int) PollWaiter {
	a.asked++
	if t != 0 || of != 1 {
		return nil
	}
	return a
}

func (a *pollTarget) Wait(until time.Duration, _, _ bool) {
	a.mu.Lock()
	out := a.fired
	a.fired = nil
	a.mu.Unlock()
	a.waits++
	for i := range out {
		out[i].Done = a.sink.Now()
	}
	if len(out) > 0 {
		a.sink.Complete(out)
		return
	}
	select {
	case <-a.woken:
	case <-time.After(until - a.sink.Now()):
	}
}

func (a *pollTarget) Wake() {
	select {
	case a.woken <- struct{}{}:
	default:
	}
}

func (a *pollTarget) Prepare() { a.ready = true }
func (a *pollTarget) Leave()   { a.left = true }

// Threads returns fewer than there are clients, and than there may be processors.
func (a *pollTarget) Threads(int) int { return 1 }
func (a *pollTarget) Clients() int    { return 3 }

// The sending thread waits in a target that offers it, and batches completed there
// count.
func TestThreadsWaitInTheirTarget(t *testing.T) {
	for _, tt := range []struct {
		name string
		plan Plan
	}{
		{"at full speed", Plan{Measurement: Limits{Events: 700}}},
		{"by a schedule", Plan{Measurement: Limits{Events: 700}, Schedule: Constant(7000)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &pollTarget{instantTarget: instantTarget{room: 7}, woken: make(chan struct{}, 1)}
			tt.plan.BatchEvents, tt.plan.MaxInFlight = 7, 3
			r := assert.Value(Fire(t.Context(), tt.plan, a))(t)
			assert.True(t, r.Measurement.Acked == 700 && a.ready && a.left && a.waits >= 700/7/3,
				"acked %d in %d waits, ready: %v, left: %v; want 700 with three batches in flight, ready and left",
				r.Measurement.Acked, a.waits, a.ready, a.left)
		})
	}
}
