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
	const why = "this machine is too busy to decide (other programs use 1.9 of 2 processors)"
	assert.True(t, a.Ending == Busy && a.Why == why && a.ExitCode(0) == host.ExitUntrusted && a.Holds == 800 && !a.HoldsConfirmed, "got %+v", a)
	text := a.Headline("p99 < 50 ms")
	assert.True(t, strings.HasPrefix(text, "no confirmed ceiling (p99 < 50 ms): "+why+"; 800/s holds in a short trial, 1.2 k/s fails in a short trial; "), "got %q", text)
	last := a.Trials[len(a.Trials)-3:]
	for i, one := range last {
		assert.True(t, one.Rate == last[0].Rate && one.Verdict.Result == Invalid && one.Verdict.Why == "not trusted, the generator may be the cause: it was late", "trial %d: %+v", i, one)
		if i > 0 {
			assert.Equal(t, one.Measure, 2*last[i-1].Measure, "the length of repetition %d", i)
		}
	}
	assert.True(t, a.Deciding == nil || a.Deciding.NotTrusted == 0, "got %+v", a.Deciding)
}

// Trials that were not trusted, and then are, do not move the answer. They do not count as trials of the
// search either.
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
	}{
		{"a disturbance", 2, Found, 900, 960},
		{"always", 100, Irregular, 569, 830},
	} {
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
