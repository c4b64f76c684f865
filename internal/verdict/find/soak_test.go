package find

import (
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
)

// A server that is slower once its credits are spent, within the soak, does not sustain the lower
// end. The answer says when that was, also if the events only wait.
func TestSoakSeesCreditsThatEnd(t *testing.T) {
	const ends = 25 * 60 // s, of virtual time; the search takes at most 11 min
	for _, limit := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond} {
		c := tally{searches: seeds(t, 2)}
		for seed := range c.searches {
			s := newServer(uint64(seed), func(s *server, now float64) float64 {
				if now < ends {
					return s.rnd.ExpFloat64() * mean
				}
				return s.rnd.ExpFloat64() * mean * 1.3
			})
			a, history := s.find(&Options{Times: p99(limit), Precision: 0.02, Budget: 10 * time.Minute, Soak: 30 * time.Minute})
			last := &history[len(history)-1]
			if last.Trial.Role != Soak || last.Trial.Rate != a.Holds || a.Soak == nil || a.Soak.Result != Fail || a.ExitCode(0) != host.ExitBroken || a.ExitCode(500) != host.ExitBroken {
				c.wrongf(t, "limit %v, seed %d: %+v", limit, seed, *a)
				continue
			}
			began := s.now - last.Elapsed.Seconds() + last.Trial.Settle.Seconds()
			if off := a.Soak.Sustained.Seconds() - (ends - began); off < -60 || off > 60 {
				c.wrongf(t, "limit %v, seed %d: sustained for %v, but the credits ended after %.0f s: %+v", limit, seed, a.Soak.Sustained, ends-began, *a.Soak)
			}
			text := a.Headline("p99")
			assert.True(t, strings.Contains(text, "; sustained for ") && strings.Contains(text, ", then "), "got %q", text)
		}
		c.check(t)
	}
}

// A system that stays as it is, is not accused.
func TestSoakOfAStationarySystem(t *testing.T) {
	n := seeds(t, 5)
	accused := 0
	for seed := range n {
		s := newServer(uint64(seed), exponential)
		s.poisson = seed%2 == 0
		a, history := s.find(&Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute, Soak: 30 * time.Minute})
		switch {
		case a.Ending == Found && a.Soak == nil:
			t.Errorf("seed %d: no soak: %+v", seed, *a)
		case a.Soak != nil && a.Soak.Result == Fail:
			accused++
			t.Logf("seed %d: at %.1f/s %+v", seed, a.Holds, *a.Soak)
		case a.Soak != nil && (a.Soak.Sustained != a.Soak.For || a.Ending == Found && a.ExitCode(0) != host.ExitOK):
			t.Errorf("seed %d: %+v", seed, *a.Soak)
		}
		k := len(history[len(history)-1].Slots)
		assert.True(t, k <= mostSoakSlots, "a soak has %d slots", k)
	}
	t.Logf("%d of %d searches were accused", accused, n)
	assert.True(t, accused*20 <= n, "%d of %d stationary systems did not sustain the lower end", accused, n)
}

// A backlog that grows makes a soak worse, also where no limit sees it.
func TestSoakSeesABacklog(t *testing.T) {
	o := Outcome{Trial: Trial{Role: Soak, Rate: 100, Measure: 300 * time.Second, Slot: time.Second, Relax: time.Second}, Achieved: 100}
	for i := range 300 {
		o.Slots = append(o.Slots, Slot{Events: 100, Over: []uint64{0}, Waiting: uint64(max(0, i-200)) * 10})
	}
	s := search{Options: &Options{Times: p99(time.Second)}}
	got := s.inThirds(&o)
	if got.Result != Fail || got.Sustained < 200*time.Second || got.Sustained > 260*time.Second || !strings.Contains(got.text(), "the backlog grew from 0 events to ") {
		t.Errorf("got %+v", got)
	}
	for i := range o.Slots {
		o.Slots[i].Waiting /= 100 // less than the limit's time of work
	}
	got = s.inThirds(&o)
	assert.True(t, got.Result == Pass, "got %+v", got)
}

// A soak that is interrupted leaves the answer as it was; one in which the system dies is its end.
func TestSoakCutShort(t *testing.T) {
	s := newServer(1, constant)
	o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute, Soak: time.Minute}
	_, history := s.find(o)
	history = history[:len(history)-1]
	o.Interrupted = true
	if next, a := o.Next(history); next != nil || a.Ending != Found || a.Soak != nil {
		t.Errorf("got %+v and %+v", next, a)
	}
	o.Interrupted = false
	next, _ := o.Next(history)
	assert.Must(t, next != nil && next.Role == Soak, "got %+v, want the soak", next)
	_, a := o.Next(append(history, Outcome{Trial: *next, Dead: "the system ended"}))
	assert.True(t, a != nil && a.Ending == Died && a.Holds == next.Rate && a.ExitCode(0) == host.ExitFailed, "got %+v", a)
	_, a = o.Next(append(history, Outcome{Trial: *next, Generator: "the generator was slow"}))
	if a == nil || a.Soak == nil || a.Soak.Result != Invalid || a.ExitCode(0) != host.ExitCannotTell || a.ExitCode(a.Holds) != host.ExitOK || a.ExitCode(2*a.Holds) != host.ExitBroken {
		t.Errorf("got %+v", a)
	}
	a.Ending = AtLeast
	assert.Equal(t, a.ExitCode(0), host.ExitUntrusted, "exit code")
}
