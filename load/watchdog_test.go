package load

import (
	"math/rand/v2"
	"testing"
	"time"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

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

// TestFreezesOfAnInterval: a freeze belongs to the interval in which it ended, and a thread's
// own does not count.
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
		if n, longest := w.endedWithin(from, from+time.Second); n != want.n || longest != want.longest {
			t.Errorf("interval %d: got %d, the longest %v, want %d and %v", i, n, longest, want.n, want.longest)
		}
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
	if got := w.end().Longest; len(got) != 2 || got[0].Cause != "stopped" || got[1].Cause != "" {
		t.Errorf("got %+v, want the cause of the longer one", got)
	}
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
