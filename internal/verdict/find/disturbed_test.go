package find

import (
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
)

// cliff is a system that fails above a rate, and has no randomness.
func cliff(t Trial, capacity float64) Outcome {
	out := Outcome{Trial: t, Elapsed: t.Settle + t.Measure + time.Second, Achieved: min(t.Rate, capacity)}
	if t.Role == Probe {
		out.Achieved = capacity
		return out
	}
	width := t.Slot.Seconds()
	for i := range max(1, int(t.Measure/t.Slot)) {
		slot := Slot{Events: uint64(t.Rate*width + 0.5), Over: []uint64{0}}
		if over := (t.Rate - capacity) * width; over > 0 {
			slot.Over[0], slot.Waiting = slot.Events, uint64(over*float64(i+1))
		}
		out.Slots = append(out.Slots, slot)
	}
	return out
}

// drive answers the trials of a search, n-th by n-th, to the end.
func drive(o *Options, answer func(t Trial, n int) Outcome) (*Answer, []Outcome) {
	var history []Outcome
	for {
		t, a := o.Next(history)
		if a != nil {
			return a, history
		}
		history = append(history, answer(*t, len(history)))
	}
}

// late lets all events of the first part of a trial be late, as a stall does.
func late(o Outcome, part int) Outcome {
	for i := range len(o.Slots) / part {
		o.Slots[i].Over[0] = o.Slots[i].Events
	}
	return o
}

// What disturbs the generator for some trials does not decide the answer.
func TestDisturbed(t *testing.T) {
	lows := 0 // confirmations of a case
	for _, tt := range []struct {
		name            string
		from, precision float64
		disturbed       func(t Trial, n int) bool
		change          func(o Outcome) Outcome
	}{
		{name: "nothing", from: 800, precision: 0.1},
		{name: "again", from: 800, precision: 0.1, disturbed: func(t Trial, _ int) bool { return t.Role == Again }},
		{name: "typical", from: 800, precision: 0.1, disturbed: func(t Trial, _ int) bool { return t.Role == Typical }},
		{name: "the second rate", from: 100, precision: 0.1, disturbed: func(_ Trial, n int) bool { return n == 2 || n == 3 }},
		{name: "below a rate that fails", from: 800, precision: 0.1, disturbed: func(_ Trial, n int) bool { return n == 3 || n == 4 }},
		{name: "while the confirmed ends are narrowed", from: 800, precision: 0.05, disturbed: func(t Trial, _ int) bool {
			return t.Role == Confirm && lows == 2
		}, change: func(o Outcome) Outcome {
			switch {
			case o.Trial.Role == Confirm && o.Trial.Rate > 800:
				return late(o, 1)
			case o.Trial.Role == Confirm:
				lows++
			}
			return o
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := &Options{Times: p99(50 * time.Millisecond), Precision: tt.precision, Budget: time.Hour, From: tt.from}
			a, _ := drive(o, func(trial Trial, n int) Outcome {
				out := cliff(trial, 1000)
				switch {
				case tt.disturbed != nil && tt.disturbed(trial, n):
					out.Generator = "the machine was busy"
				case tt.change != nil:
					out = tt.change(out)
				}
				return out
			})
			if a.Ending != Found || !a.HoldsConfirmed || !a.FailsConfirmed || a.ExitCode(0) != 0 || a.Holds > 1000 || tt.change == nil && len(a.Inversions) > 0 {
				t.Errorf("%s, %v to %v, confirmed %t and %t: %s, inversions %q", a.Ending, a.Holds, a.Fails, a.HoldsConfirmed, a.FailsConfirmed, a.Why, a.Inversions)
				trialsOf(t, a)
			}
		})
	}
}

// Trials that go wrong for a reason of their own lead to the ending that says so.
func TestEndings(t *testing.T) {
	for _, tt := range []struct {
		name   string
		o      Options
		answer func(t Trial, n int) Outcome
		ending Ending
		code   int
	}{
		{"the highest rate fails in a short trial", Options{Precision: 0.1, From: 18_000, To: 20_000}, func(t Trial, n int) Outcome {
			if t.Rate == 20_000 && t.Role == Search {
				return cliff(t, 18_000)
			}
			return cliff(t, 1e9)
		}, Highest, host.ExitOK},
		{"the generator sends no confirmation", Options{Precision: 0.3, From: 800}, func(t Trial, _ int) Outcome {
			out := cliff(t, 1000)
			if t.Role == Confirm {
				out.Generator = "the machine was busy"
			}
			return out
		}, Busy, host.ExitUntrusted},
		{"a wide precision, and a rate that is answered a little late", Options{Precision: 0.5, From: 100}, func(t Trial, _ int) Outcome {
			out := cliff(t, 1000)
			out.Achieved *= 0.998
			return out
		}, Found, host.ExitOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Times, tt.o.Budget = p99(50*time.Millisecond), time.Hour
			if a, _ := drive(&tt.o, tt.answer); a.Ending != tt.ending || a.ExitCode(0) != tt.code {
				t.Errorf("%s, %v to %v: %s", a.Ending, a.Holds, a.Fails, a.Why)
				trialsOf(t, a)
			}
		})
	}
}

// What happens in the trials that follow the answer does not take it away.
func TestAfterTheAnswer(t *testing.T) {
	find := func(alter func(o *Outcome)) *Answer {
		o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.1, Budget: time.Hour, From: 800, Soak: 10 * time.Minute}
		a, _ := drive(o, func(trial Trial, _ int) Outcome {
			out := cliff(trial, 1000)
			alter(&out)
			return out
		})
		return a
	}
	const unclear = "cpu<80%: the system was not seen"
	a := find(func(o *Outcome) {
		if r := o.Trial.Role; r == Beyond || r == Again || r == Typical {
			o.Unclear = unclear
		}
	})
	if a.Ending != Found || a.ExitCode(0) != host.ExitOK || a.AfterOverload == nil || a.AfterOverload.Result != Undecided || a.AfterOverload.Why != unclear || a.Soak == nil || a.Soak.Result != Pass {
		t.Errorf("got %+v", *a)
	}
	a = find(func(o *Outcome) {
		if o.Trial.Role == Soak {
			o.Unclear = unclear
		}
	})
	if a.Ending != Found || a.Soak == nil || a.Soak.Result != Invalid || a.Soak.Why != unclear || a.ExitCode(0) != host.ExitCannotTell {
		t.Errorf("got %+v", *a)
	}
	a = find(func(o *Outcome) {
		if o.Trial.Role == Typical {
			o.Broken = "2 events failed: timeout"
		}
	})
	if a.Ending != Found || len(a.Inversions) != 1 || !strings.HasSuffix(a.Inversions[0], " fails: 2 events failed: timeout") {
		t.Errorf("got %+v", *a)
	}
	a = find(func(o *Outcome) {
		if o.Trial.Role == Search {
			o.Unclear = unclear
		}
	})
	if a.Ending != Irregular || a.Why != unclear {
		t.Errorf("got %+v", *a)
	}
}

// A search that is interrupted in a confirmation has confirmed nothing.
func TestInterruptedConfirmation(t *testing.T) {
	o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.05, Budget: time.Hour, From: 90_000}
	a, history := drive(o, func(t Trial, _ int) Outcome {
		o.Interrupted = o.Interrupted || t.Role == Confirm
		return cliff(t, 100_000)
	})
	if last := history[len(history)-1].Trial.Role; last != Confirm || !a.CutShort() || a.Holds == 0 || a.HoldsConfirmed {
		t.Errorf("%s, last %s, holds %v, confirmed %t", a.Ending, last, a.Holds, a.HoldsConfirmed)
	}
}

// One stall is not the limit, also where the budget has no time for another confirmation.
func TestStallAtTheEndOfTheBudget(t *testing.T) {
	const rate = 1000
	s := search{Options: &Options{Times: p99(50 * time.Millisecond), Precision: 0.1, Budget: time.Hour}}
	s.timing, _ = s.plan(2 * rate)
	s.elapsed = s.Budget - s.confirm
	trial := Trial{Role: Confirm, Rate: rate, Settle: s.settle, Measure: s.timing.search, Slot: s.slot(), Relax: s.relax}
	s.history = []Outcome{late(cliff(trial, 2*rate), 2)}
	v, err := s.confirmAt(rate)
	_, fails := s.bounds(true)
	assert.True(t, err == nil && v.Result == Fail && fails == 0, "got %+v and %v, and %v fails", v, err, fails)
}

// trialsOf logs the trials of an answer.
func trialsOf(t *testing.T, a *Answer) {
	for i := range a.Trials {
		t.Logf("   %s", strings.Join(a.Rows()[i+1], "  "))
	}
}
