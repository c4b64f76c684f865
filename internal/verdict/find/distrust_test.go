package find

import (
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// searchUntil answers the trials of a search from 800/s at a system of 1,000/s, altered.
func searchUntil(alter func(o *Outcome, n int)) *Answer {
	o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.1, Budget: time.Hour, From: 800}
	a, _ := drive(o, func(trial Trial, n int) Outcome {
		out := cliff(trial, 1000)
		alter(&out, n)
		return out
	})
	return a
}

// distrusted is what a report says of a trial that other programs disturbed.
func distrusted(o *Outcome) {
	o.Trust, o.Doubt = measure.NotTrusted, "it was late"
	late(*o, 1)
	o.Others, o.OthersMost = Use{Used: 1.9, Bound: 2}, 2
}

// A trial that is not trusted decides nothing. It is repeated, longer each time, and after three in a row
// the search says that the machine is too busy, with what it knows.
func TestTooBusyToDecide(t *testing.T) {
	a := searchUntil(func(o *Outcome, n int) {
		if n >= 3 { // 0 warms up, 1 holds, 2 fails
			distrusted(o)
		}
	})
	const why = "this machine is too busy to decide (other programs use 1.9 of 2 processors); stop them, or use a quieter machine"
	assert.True(t, a.Ending == Busy && a.Why == why && a.ExitCode(0) == host.ExitUntrusted && a.Holds == 800 && !a.HoldsConfirmed, "got %+v", a)
	text := a.Headline("p99 < 50 ms")
	assert.True(t, strings.HasPrefix(text, "no confirmed ceiling (p99 < 50 ms): "+why+"; 800/s holds in a short trial, 1.2 k/s fails in a short trial; "), "got %q", text)
	last := a.Trials[len(a.Trials)-3:]
	for i, one := range last {
		assert.True(t, one.Rate == last[0].Rate && one.Verdict.Result == Invalid && one.Verdict.Why == "not trusted: it was late", "trial %d: %+v", i, one)
		if i > 0 {
			assert.Equal(t, one.Measure, 2*last[i-1].Measure, "the length of repetition %d", i)
		}
	}
	assert.True(t, a.Deciding == nil || a.Deciding.NotTrusted == 0, "got %+v", a.Deciding)
}

// Trials that were not trusted, and then are, do not move the answer. They do not count as trials of the search either.
func TestDistrustedTrialsDecideNothing(t *testing.T) {
	quiet := searchUntil(func(*Outcome, int) {})
	twice := 0
	a := searchUntil(func(o *Outcome, _ int) {
		if o.Trial.Role == Probe || o.Trial.Role == WarmUp || o.Trial.Role == Beyond {
			return
		}
		if twice++; twice%3 != 0 {
			distrusted(o)
		}
	})
	assert.True(t, a.Ending == Found && a.Holds == quiet.Holds && a.Fails == quiet.Fails && a.ExitCode(0) == host.ExitOK, "got %s, %v to %v, want %v to %v: %s", a.Ending, a.Holds, a.Fails, quiet.Holds, quiet.Fails, a.Why)
	assert.True(t, a.Deciding.NotTrusted == 0 && len(a.Trials) > MostTrials, "%d trials, %+v", len(a.Trials), a.Deciding)
}

// A trial that fails while other programs use more than the load explains says nothing.
func TestUnexplainedLoad(t *testing.T) {
	for _, tt := range []struct {
		name          string
		used, holding float64 // in trials that fail, and in others
		ending        Ending
	}{
		{name: "a neighbour", used: 1.5, holding: 0.1, ending: Busy},
		{name: "a system on this machine", used: 1.9, holding: 1.2, ending: Found},
		{name: "always as busy", used: 1.9, holding: 1.9, ending: Found},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := searchUntil(func(o *Outcome, _ int) {
				o.Others = Use{Used: tt.holding, Bound: 2}
				if o.Trial.Rate > 1000 {
					o.Others.Used = tt.used
				}
				o.OthersMost = o.Others.Used
			})
			assert.True(t, a.Ending == tt.ending, "got %s: %s", a.Ending, a.Why)
		})
	}
}

// The verdict of the lower end after an overload is its own, whatever the trial after it is.
func TestAfterOverload(t *testing.T) {
	a := searchUntil(func(o *Outcome, _ int) {
		if o.Trial.Role == Again {
			late(*o, 1)
		}
	})
	typical := a.Trials[len(a.Trials)-1]
	assert.True(t, a.AfterOverload != nil && a.AfterOverload.Result == Fail && typical.Role == Typical && typical.Verdict.Result == Pass, "got %+v", a.AfterOverload)
	// Where the budget ends between the two, the first one stays.
	o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.1, Budget: time.Hour, From: 800}
	a, _ = drive(o, func(trial Trial, _ int) Outcome {
		out := cliff(trial, 1000)
		if trial.Role == Again {
			out.Elapsed = 2 * o.Budget
		}
		return out
	})
	assert.True(t, a.Ending == Found && a.AfterOverload != nil && a.AfterOverload.Result == Pass && a.AfterOverload.Why != "", "got %+v", a.AfterOverload)
	for _, r := range a.Remarks() {
		assert.True(t, !strings.HasSuffix(r.Text, ": , "), "%s: %q", r.Name, r.Text)
	}
}

// A search in which no rate holds says if a lower rate would not help.
func TestTheRateMakesNoDifference(t *testing.T) {
	every := func(o *Outcome, k int) {
		for i := range o.Slots {
			o.Slots[i].Events = max(o.Slots[i].Events, 1)
			if i%k == 0 {
				o.Slots[i].Over[0] = o.Slots[i].Events
			}
		}
	}
	a := searchUntil(func(o *Outcome, _ int) { every(o, 5) })
	assert.True(t, a.Ending == None && strings.Contains(a.Why, ", and the rate makes no difference: at 800/s 20.3 % took longer than 50 ms, at 1/s 20.2 %"), "got %s: %s", a.Ending, a.Why)
	a = searchUntil(func(o *Outcome, _ int) {
		if o.Trial.Rate > 100 {
			every(o, 1)
		} else {
			every(o, 5)
		}
	})
	assert.True(t, a.Ending == None && !strings.Contains(a.Why, "makes no difference"), "got %s: %s", a.Ending, a.Why)
}

// The limit of trials is named where it ends a search.
func TestMostTrialsAreNamed(t *testing.T) {
	o := &Options{Times: []TimeLimit{{Name: "p95<50ms", Within: 50 * time.Millisecond, Quantile: 0.95}}, Precision: 0.02, Budget: 100 * time.Hour}
	a, _ := newServer(0, spikes).find(o)
	assert.True(t, a.Ending == Stopped && a.Why == "24 trials, the most of a search, were not enough", "got %s: %s", a.Ending, a.Why)
}

// An end that another trial contradicts is tried again. Here short trials reach 1,000/s and others 940/s, and
// 825/s fails for a while, or whenever it is tried for long.
func TestContradictedEnd(t *testing.T) {
	for _, tt := range []struct {
		name         string
		most         int // trials that fail at 825/s
		ending       Ending
		holds, fails float64
	}{{"a disturbance", 2, Found, 900, 960}, {"always", 100, Irregular, 569, 830}} {
		t.Run(tt.name, func(t *testing.T) {
			failed := 0
			o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.1, Budget: 10 * time.Hour, From: 900}
			a, _ := drive(o, func(trial Trial, _ int) Outcome {
				if trial.Role != Confirm {
					return cliff(trial, 1000)
				}
				out := cliff(trial, 940)
				if trial.Rate > 800 && trial.Rate < 850 && failed < tt.most {
					failed++
					late(out, 1)
				}
				return out
			})
			if a.Ending != tt.ending || a.Holds < tt.holds || a.Fails > tt.fails || contradicted(a) != "" {
				t.Errorf("got %s, %v to %v: %s", a.Ending, a.Holds, a.Fails, a.Why)
				trialsOf(t, a)
			}
			if tt.ending == Irregular {
				assert.True(t, strings.HasPrefix(a.Why, "the trials contradict each other: 900/s holds although 82"), "got %s", a.Why)
			}
		})
	}
}

// The knee is not at a rate at which the limits fail.
func TestKneeBelowTheLimits(t *testing.T) {
	at := func(rate float64, ms int, r Result) Tried {
		return Tried{
			Trial: Trial{Role: Search, Rate: rate}, Verdict: &Verdict{Result: r},
			Times: []Quantile{{Of: "response", P: 50, At: time.Millisecond}, {Of: "response", P: 99, At: time.Duration(ms) * time.Millisecond}},
		}
	}
	a := &Answer{Trials: []Tried{at(100, 10, Pass), at(200, 15, Pass), at(900, 60, Fail), at(1000, 900, Fail)}}
	assert.True(t, a.CurveKnee() == nil, "got %+v", a.CurveKnee())
	a.Trials[2] = at(900, 60, Pass)
	assert.True(t, a.CurveKnee() != nil && a.CurveKnee().Rate == 900, "got %+v", a.CurveKnee())
}

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
	last := history[len(history)-1].Trial.Role
	assert.True(t, last == Confirm && a.CutShort() && a.Holds != 0 && !a.HoldsConfirmed, "%s, last %s, holds %v, confirmed %t", a.Ending, last, a.Holds, a.HoldsConfirmed)
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

// An answer counts the trials that it rests on, and those of them that the generator may have affected.
func TestDeciding(t *testing.T) {
	trial := func(role Role, rate float64, inFlight int, result Result, trust measure.Level) Tried {
		tried := Tried{Trial: Trial{Role: role, Rate: rate, Concurrency: inFlight}, Trust: trust}
		if result != "" {
			tried.Verdict = &Verdict{Result: result}
		}
		return tried
	}
	const remark = ": the generator may have affected it"
	for _, tt := range []struct {
		name string
		a    Answer
		want Deciding
		says string
	}{
		{"the ends", Answer{Holds: 900, Fails: 1000, Trials: []Tried{
			trial(Probe, 0, 8, "", measure.NotTrusted), trial(Search, 500, 0, Pass, measure.NotTrusted), trial(Search, 900, 0, Pass, ""), trial(Confirm, 900, 0, Pass, measure.Noisy),
			trial(Confirm, 1000, 0, Fail, measure.NotTrusted), trial(Confirm, 1000, 0, Fail, measure.NotTrusted), trial(Confirm, 1000, 0, Invalid, measure.NotTrusted), trial(Again, 900, 0, Pass, measure.Noisy),
		}}, Deciding{Trials: 4, Noisy: 1, NotTrusted: 2}, "of 4 trials that the answer rests on, 2 were not trusted and 1 was noisy" + remark},
		{"one end", Answer{Fails: 1000, Trials: []Tried{trial(Search, 1000, 0, Fail, measure.Noisy)}}, Deciding{Trials: 1, Noisy: 1}, "of 1 trial that the answer rests on, 1 was noisy" + remark},
		{"trusted", Answer{Holds: 900, Trials: []Tried{trial(Confirm, 900, 0, Pass, ""), trial(Typical, 720, 0, Pass, measure.Noisy)}}, Deciding{Trials: 1}, ""},
		{"reading", Answer{Holds: 900, Fails: 950, Trials: []Tried{
			trial(WarmUp, 0, 0, "", measure.NotTrusted), trial(Read, 0, 0, Pass, measure.Noisy), trial(Read, 0, 0, Pass, ""), trial(Read, 0, 0, Invalid, measure.NotTrusted),
		}}, Deciding{Trials: 2, Noisy: 1}, "of 2 trials that the answer rests on, 1 was noisy" + remark},
		{"requests in flight", Answer{Knee: &Knee{Enough: 8, Below: 7, Best: 32}, Trials: []Tried{
			trial(Search, 0, 4, "", measure.NotTrusted), trial(Search, 0, 8, "", measure.Noisy), trial(Confirm, 0, 7, "", ""), trial(Confirm, 0, 32, "", measure.Noisy),
		}}, Deciding{Trials: 3, Noisy: 2}, "of 3 trials that the answer rests on, 2 were noisy" + remark},
		{"no end", Answer{Trials: []Tried{trial(Search, 1000, 0, Undecided, measure.Noisy)}}, Deciding{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.a.Deciding = tt.a.deciding()
			var got Deciding
			if d := tt.a.Deciding; d != nil {
				got = *d
			}
			says := ""
			for _, r := range tt.a.Remarks() {
				if r.Name == Doubtful {
					says = r.Text
				}
			}
			assert.True(t, got == tt.want && says == tt.says, "got %+v, %q; want %+v, %q", got, says, tt.want, tt.says)
		})
	}
}

// A search counts the trials of its own history.
func TestDecidingOfASearch(t *testing.T) {
	o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute}
	_, history := newServer(1, exponential).find(o)
	for i := range history {
		if history[i].Trial.Role == Confirm {
			history[i].Trust = measure.Noisy
		}
	}
	_, a := o.Next(history)
	assert.Must(t, a != nil && a.Ending == Found && a.Deciding != nil && a.Deciding.Noisy >= 2 && a.Deciding.Noisy <= a.Deciding.Trials && a.Deciding.NotTrusted == 0,
		"got %+v", a)
	again := o.Again(history)
	assert.True(t, again.Deciding != nil && again.Deciding.Noisy != 0, "judged again: %+v", again.Deciding)
}
