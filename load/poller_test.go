package load

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"carronade/measure"
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

func (a *pollTarget) Start(s Sink)                     { a.sink = s }
func (a *pollTarget) Route(int32) Lane                 { return pollLane{a} }
func (a *pollTarget) Capabilities() TargetCapabilities { return TargetCapabilities{Poller: a} }

// pollLane is its lane.
type pollLane struct{ *pollTarget }

func (pollLane) Capabilities() LaneCapabilities { return LaneCapabilities{} }

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

// The sending thread waits in a target that offers it, and batches completed there count.
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

// TestFreezes: which of several overlapping freezes are listed, and that the cause of
// each is looked up once, by its length and with no lock held.
func TestFreezes(t *testing.T) {
	const ms = time.Millisecond
	w := &watchdog{clip: func(from, to time.Duration) time.Duration { return to - from }}
	var asked []time.Duration
	w.cause = func(length time.Duration) string {
		asked = append(asked, length)
		if !w.mu.TryLock() {
			t.Error("the lock is held while the cause is looked for")
		} else {
			w.mu.Unlock()
		}
		return map[time.Duration]string{60 * ms: "stopped"}[length]
	}
	w.note(frozeSending, 100*ms, 150*ms)
	w.note(frozeProcess, 95*ms, 155*ms) // the same freeze, more precisely
	w.note(frozeReceiving, 95*ms, 155*ms)
	w.note(frozeProcess, 200*ms, 205*ms) // too short
	w.note(frozeReceiving, 300*ms, 320*ms)
	w.findCauses(400 * ms)
	w.findCauses(405 * ms)
	want := measure.Freezes{Count: 2, Total: 80 * ms, Longest: []measure.Freeze{
		{At: 95 * ms, Length: 60 * ms, Who: frozeProcess, Cause: "stopped"},
		{At: 300 * ms, Length: 20 * ms, Who: frozeReceiving},
	}, Process: []measure.Freeze{{At: 95 * ms, Length: 60 * ms, Who: frozeProcess}}}
	assert.Same(t, w.end(), want)
	assert.Same(t, asked, []time.Duration{50 * ms, 60 * ms, 20 * ms}, "asked")
}

// A freeze belongs to the interval in which it ended, and a thread's own does not count.
func TestFreezesOfAnInterval(t *testing.T) {
	const ms = time.Millisecond
	var w watchdog
	w.note(frozeProcess, 100*ms, 150*ms)
	w.note(frozeProcess, 980*ms, 1010*ms)
	w.note(frozeSending, 1200*ms, 1290*ms)
	w.note(frozeProcess, 1500*ms, 1520*ms)
	w.note(frozeProcess, 1990*ms, 2000*ms)
	for i, want := range []struct {
		n       int
		longest time.Duration
	}{{1, 50 * ms}, {3, 30 * ms}, {0, 0}} {
		from := time.Duration(i) * time.Second
		n, longest := w.endedWithin(from, from+time.Second)
		assert.True(t, n == want.n && longest == want.longest, "interval %d: got %d, the longest %v, want %d and %v", i, n, longest, want.n, want.longest)
	}
}

// TestLateEvidence: the cause of a freeze is looked up a second time if there was none,
// with the time since its beginning, and not when that is much longer than the freeze.
func TestLateEvidence(t *testing.T) {
	const ms = time.Millisecond
	var w watchdog
	var asked []time.Duration
	w.cause = func(length time.Duration) string {
		if asked = append(asked, length); length > 300*ms {
			return "stopped"
		}
		return ""
	}
	w.note(frozeProcess, 100*ms, 400*ms)
	w.note(frozeProcess, 410*ms, 430*ms)
	for _, at := range []time.Duration{435 * ms, 540 * ms, 551 * ms, 700 * ms} {
		w.findCauses(at)
	}
	assert.Same(t, asked, []time.Duration{300 * ms, 20 * ms, 451 * ms}, "asked")
	got := w.end().Longest
	assert.True(t, len(got) == 2 && got[0].Cause == "stopped" && got[1].Cause == "", "got %+v, want the cause of the longer one", got)
}

// TestWatchdogPauses: the watchdog runs only while a thread has something to do.
func TestWatchdogPauses(t *testing.T) {
	w := &watchdog{resume: make(chan struct{}, 1)}
	start := time.Now().Add(-time.Hour)
	w.addActive(2)
	w.start(func() time.Duration { return time.Since(start) })
	watching := func(want bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); (w.beat.Load() > 0) != want; <-time.After(time.Millisecond) {
			assert.Must(t, !time.Now().After(deadline), "watching is still %v", !want)
		}
	}
	for range 3 {
		watching(true)
		w.addActive(-1)
		w.addActive(-1)
		watching(false)
		w.addActive(1)
		watching(true)
		w.addActive(1)
	}
	w.addActive(-2)
	watching(false)
	w.end()
}

// TestKnow: freezes in any order, which may overlap, count each moment once.
func TestKnow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		w := &watchdog{clip: func(from, to time.Duration) time.Duration { return to - from }}
		var seen [400]bool
		for range 60 {
			from := rnd.IntN(370)
			to := from + 1 + rnd.IntN(30)
			first, fresh := w.know(time.Duration(from), time.Duration(to))
			wantFirst, want := true, time.Duration(0)
			for i := from; i < to; i++ {
				if seen[i] {
					wantFirst = false
				} else {
					want++
				}
				seen[i] = true
			}
			assert.Must(t, first == wantFirst && fresh == want,
				"%d to %d: first %v, %d are new; want %v, %d", from, to, first, fresh, wantFirst, want)
			for i := 1; i < len(w.known); i++ {
				assert.Must(t, w.known[i-1].to <= w.known[i].from, "not in order: %v", w.known)
			}
		}
	}
}

// BenchmarkNote notes what a late answer does after a freeze: nothing new, mostly.
func BenchmarkNote(b *testing.B) {
	w := &watchdog{clip: func(from, to time.Duration) time.Duration { return to - from }}
	for i := range mostFreezes {
		w.note(frozeSending, time.Duration(i)*time.Second, time.Duration(i)*time.Second+20*time.Millisecond)
	}
	for b.Loop() {
		w.note(frozeReceiving, 4000*time.Second, 4000*time.Second+15*time.Millisecond)
	}
}

// The list contains the newest mostDisturbances. One that begins or ends removes only the one whose place it
// takes, and what is forgotten still covers its time.
func TestDisturbancesRemembered(t *testing.T) {
	at := func(i int) time.Duration { return time.Duration(i) * time.Second }
	var x disturbances
	for i := range 3 * mostDisturbances {
		late := 2 * time.Millisecond
		if i == 1 {
			late = 5 * time.Millisecond
		}
		x.begin(at(i), at(i)+late, false)
		x.begin(at(i)+late, at(i)+late+time.Millisecond, true) // the same thread is late again
		x.end(at(i) + 10*time.Millisecond)
		l := x.list.Load()
		want := min(i+1, mostDisturbances)
		assert.Must(t, len(l.d) == want, "%d are remembered after %d, want %d", len(l.d), i+1, want)
		oldest := max(0, i+1-mostDisturbances)
		if l.d[0].from != at(oldest) || l.d[len(l.d)-1].from != at(i) || l.d[len(l.d)-1].to != at(i)+10*time.Millisecond {
			t.Fatalf("after %d the list goes from %+v to %+v", i+1, l.d[0], l.d[len(l.d)-1])
		}
	}
	l := x.list.Load()
	for _, tt := range []struct {
		name      string
		due, want time.Duration
	}{
		{"within the newest", at(3*mostDisturbances-1) + 9*time.Millisecond, 2 * time.Millisecond},
		{"after the newest", at(3*mostDisturbances-1) + 10*time.Millisecond, 0},
		{"between two", at(3*mostDisturbances-2) + 500*time.Millisecond, 0},
		{"within the oldest", at(2 * mostDisturbances), 2 * time.Millisecond},
		{"forgotten", at(2*mostDisturbances - 1), 5 * time.Millisecond},
		{"before all", -time.Millisecond, 0},
	} {
		assert.Equal(t, l.at(tt.due), tt.want, "%s: longest delay of an event due at %v", tt.name, tt.due)
	}
}

// The generator is late by 2 ms while the system stalls for half a second of five. The lower values of the
// stall's times are then shorter by 2 ms.
func TestLowerBoundInAStall(t *testing.T) {
	const usual, late = 5 * time.Millisecond, 2 * time.Millisecond
	var l LowerBound
	measured := &measure.Histogram{}
	for i := range 2500 {
		d, disturbed := usual, time.Duration(0)
		if i >= 1000 && i < 1250 { // an event every 2 ms
			d, disturbed = usual+time.Duration(1250-i)*2*time.Millisecond, late
		}
		measured.Record(d)
		l.Record(Elapsed{least: d, late: disturbed}, 1)
	}
	for _, p := range []float64{50, 90.4, 95, 99} {
		want := measured.Percentile(p) - late
		if p == 50 {
			want = usual
		}
		got := l.Bound().Percentile(p)
		assert.True(t, got >= want-want/50 && got <= want+want/50, "p%v: got %v, want %v", p, got, want)
	}
}

// On a busy machine, bursts disturb many of the events, and lengthen few of them. Lower values are below the
// true ones at every percentile, however many events are disturbed.
func TestLowerBoundIsNotAbove(t *testing.T) {
	rng := rand.New(rand.NewPCG(37, 0))
	for _, tt := range []struct {
		name           string
		disturbed, hit float64 // shares of the events, and of the disturbed ones that took longer
	}{
		{"few", 0.05, 1}, {"a third", 0.3, 0.3}, {"half", 0.5, 0.1}, {"nearly all", 0.95, 0.2}, {"all", 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l LowerBound
			actual, measured := measure.NewHistogram(), measure.NewHistogram()
			for range 20_000 {
				d := 5*time.Millisecond + time.Duration(rng.ExpFloat64()*float64(time.Millisecond))
				added, late := time.Duration(0), time.Duration(0)
				if rng.Float64() < tt.disturbed {
					late = time.Duration(1 + rng.Int64N(int64(4*time.Millisecond)))
					if rng.Float64() < tt.hit {
						added = time.Duration(rng.Int64N(int64(late)))
					}
				}
				actual.Record(d)
				measured.Record(d + added)
				l.Record(Elapsed{took: d + added, least: d + added, late: late}, 1)
			}
			for _, p := range []float64{1, 10, 50, 75, 90, 95, 99} {
				lower, upper, want := l.Bound().Percentile(p), measured.Percentile(p), actual.Percentile(p)
				assert.True(t, lower <= want && want <= upper, "p%v is %v to %v, the true one %v", p, lower, upper, want)
			}
		})
	}
}
