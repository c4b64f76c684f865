package find

import (
	"math"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
	"carronade/units"
)

// tried is the outcome of a trial of 10 min at a rate, in which this share was late.
func tried(role Role, rate, late float64) Outcome {
	o := Outcome{
		Trial:    Trial{Role: role, Rate: rate, Settle: time.Second, Measure: 10 * time.Minute, Slot: time.Second, Relax: time.Second},
		Achieved: rate, Elapsed: time.Minute, ReportID: "r",
	}
	for range 600 {
		o.Slots = append(o.Slots, Slot{Events: uint64(rate), Over: []uint64{uint64(math.Round(late * rate))}})
	}
	return o
}

// Other limits are answered as far as the trials decide them, and the rest is said.
func TestAgain(t *testing.T) {
	short := tried(Search, 900, 0)
	short.Trial.Measure, short.Slots = time.Second, short.Slots[:1]
	beyond := tried(Beyond, 1200, 0)
	beyond.Trial.Settle = 0
	generator := tried(Search, 1200, 0)
	generator.Generator = "it sent too little"
	unclear := tried(Search, 900, 0)
	unclear.Unclear = "no metric has its name"
	for _, tt := range []struct {
		name         string
		trials       []Outcome
		ending       Ending
		holds, fails float64
		why          string
	}{
		{"both ends", []Outcome{tried(Confirm, 1000, 0), tried(Confirm, 1015, 0.2)}, Found, 1000, 1015, "20 % took longer"},
		{"a gap", []Outcome{tried(Confirm, 820, 0), tried(Confirm, 1100, 0.2)}, Stopped, 820, 1100, "nothing between 820/s and 1.1 k/s was measured"},
		{"an undecided rate in the gap", []Outcome{tried(Confirm, 820, 0), tried(Search, 900, 0.01), tried(Confirm, 1100, 0.2)}, Stopped, 820, 1100, "between 820/s and 1.1 k/s: 900/s is undecided"},
		{"no failure", []Outcome{tried(Search, 700, 0), tried(Confirm, 820, 0)}, NoTop, 820, 0, "nothing above 820/s was measured"},
		{"no pass", []Outcome{tried(Search, 700, 0.2), tried(Confirm, 820, 0.3)}, Stopped, 0, 700, "nothing below 700/s was measured"},
		{"too short to hold", []Outcome{short}, Stopped, 0, 0, "900/s is undecided: 1 s of trials are too short"},
		{"without settling", []Outcome{tried(Confirm, 820, 0), beyond}, Stopped, 820, 0, "1.2 k/s is undecided: its trials did not settle"},
		{"the generator", []Outcome{tried(Confirm, 820, 0), generator}, Stopped, 820, 0, "says nothing of the system: it sent too little"},
		{"a pass above a failure", []Outcome{tried(Confirm, 700, 0), tried(Confirm, 710, 0.3), tried(Confirm, 900, 0)}, Irregular, 700, 710, "900/s holds although 710/s fails"},
		{"what cannot be checked", []Outcome{unclear}, Irregular, 0, 0, "no metric has its name"},
		{"probes only", []Outcome{{Trial: Trial{Role: Probe, Concurrency: 1}, Achieved: 100}}, Stopped, 0, 0, "no trial had a rate"},
		{"none", nil, Stopped, 0, 0, "no trial had a rate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute}
			a := o.Again(tt.trials)
			assert.True(t, a.Ending == tt.ending && a.Holds == tt.holds && a.Fails == tt.fails && strings.Contains(a.Why, tt.why),
				"got %s, holds %v, fails %v: %s", a.Ending, a.Holds, a.Fails, a.Why)
			assert.Equal(t, len(a.Trials), len(tt.trials), "trials")
			assert.True(t, (len(a.Inversions) > 0) == strings.Contains(tt.name, "above a failure"), "inversions: %q", a.Inversions)
		})
	}
}

// The trials of a search answer its own limits again as the search did.
func TestAgainLikeTheSearch(t *testing.T) {
	for seed := range uint64(5) {
		s := newServer(seed+1, exponential)
		o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute}
		first, history := s.find(o)
		a := o.Again(history)
		assert.True(t, a.Fails >= first.Holds && a.Holds <= first.Fails,
			"seed %d: %v to %v, and the search answered %v to %v", seed, a.Holds, a.Fails, first.Holds, first.Fails)
		again := o.Again(history)
		assert.True(t, again.Holds == a.Holds && again.Why == a.Why, "seed %d: another answer to the same trials", seed)
	}
}

// The knee is where the rate is largest for its time.
func TestCurveKnee(t *testing.T) {
	at := func(rate float64, ms ...int) (out []Tried) {
		for _, m := range ms {
			out = append(out, Tried{
				Trial: Trial{Role: Search, Rate: rate}, Verdict: &Verdict{Result: Pass},
				Times: []Quantile{{Of: "response", P: 50, At: time.Millisecond}, {Of: "response", P: 99, At: time.Duration(m) * time.Millisecond}},
			})
		}
		return out
	}
	join := func(of ...[]Tried) (out []Tried) {
		for _, o := range of {
			out = append(out, o...)
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		trials []Tried
		want   string
	}{
		{"flat, then steep", join(at(100, 10), at(200, 11), at(400, 12), at(500, 90)), "400/s, at p99 12 ms: above it times grow faster than the rate"},
		{"one stall counts little", join(at(100, 10), at(200, 11), at(400, 12, 900, 13), at(500, 90)), "400/s, at p99 13 ms: above it times grow faster than the rate"},
		{"steep from the start", join(at(100, 10), at(200, 30), at(400, 90)), "at or below 100/s, the lowest rate measured, with p99 10 ms"},
		{"falling, then steep", join(at(100, 20), at(200, 11), at(400, 12), at(500, 90)), "400/s, at p99 12 ms: above it times grow faster than the rate"},
		{"falling", join(at(100, 20), at(200, 12), at(400, 7), at(500, 6)), ""},
		{"falling, and hardly rising", join(at(100, 20), at(200, 12), at(400, 5), at(500, 8)), ""},
		{"flat to the end", join(at(100, 10), at(200, 11), at(400, 12)), ""},
		{"two rates", join(at(100, 10), at(200, 30)), ""},
		{"none", nil, ""},
	} {
		got := ""
		if k := (&Answer{Trials: tt.trials}).CurveKnee(); k != nil {
			got = k.String()
		}
		assert.Equal(t, got, tt.want, "%s", tt.name)
	}
}

// Trials that say nothing of the system are not on the curve.
func TestCurve(t *testing.T) {
	times := []Quantile{{Of: "response", P: 99, At: time.Millisecond}}
	a := &Answer{Trials: []Tried{
		{Trial: Trial{Role: Probe}, Times: times},
		{Trial: Trial{Role: WarmUp, Rate: 1}, Times: times},
		{Trial: Trial{Role: Search, Rate: 20}, Times: times, Verdict: &Verdict{Result: Fail}},
		{Trial: Trial{Role: Search, Rate: 30}, Times: times, Verdict: &Verdict{Result: Invalid}},
		{Trial: Trial{Role: Confirm, Rate: 10}, Times: times, Verdict: &Verdict{Result: Pass}},
		{Trial: Trial{Role: Beyond, Rate: 40}, Times: times},
		{Trial: Trial{Role: Search, Rate: 50}, Verdict: &Verdict{Result: Fail}},
	}}
	curve := a.Curve()
	assert.True(t, len(curve) == 3 && curve[0].Rate == 10 && curve[1].Result == Fail && curve[2].Rate == 40 && curve[2].Result == "", "got %+v", curve)
}

// Repeated searches answer with the median and the range of their lower ends. Those without one do
// not count, and the worst exit code decides.
func TestRepeat(t *testing.T) {
	found := func(holds float64) *Answer {
		return &Answer{Ending: Found, Holds: holds, HoldsConfirmed: true, Fails: 1.05 * holds, FailsConfirmed: true, Elapsed: time.Minute, Trials: make([]Tried, 10)}
	}
	for _, tt := range []struct {
		name     string
		searches []*Answer
		atLeast  float64
		text     string
		code     int
	}{
		{"three", []*Answer{found(900), found(950), found(920)}, 0, "ceiling from 920/s, 900 to 950/s (p99 < 50 ms); 3 searches, 30 trials in 3m", 0},
		{"one below", []*Answer{found(900), found(950), found(920)}, 910, "ceiling from 920/s", 1},
		{"one stopped", []*Answer{found(900), {Ending: Stopped, Holds: 100}, found(920)}, 0, "ceiling from 910/s, 900 to 920/s (p99 < 50 ms); 2 of 3 searches found both ends; 3 searches", 4},
		{"the highest rate", []*Answer{{Ending: Highest, Holds: 500, HoldsConfirmed: true}}, 0, "holds at 500/s (p99 < 50 ms): it was the highest rate allowed; 1 search, ", 0},
		{"none", []*Answer{{Ending: None}}, 0, "no confirmed ceiling (p99 < 50 ms); 1 search, ", 1},
	} {
		r := Repeat(tt.searches)
		text := r.Headline("p99 < 50 ms")
		assert.True(t, strings.HasPrefix(text, tt.text) && r.ExitCode(tt.atLeast) == tt.code, "%s: got %q and exit code %d", tt.name, text, r.ExitCode(tt.atLeast))
	}
}

// A fast system reaches the highest rate allowed wherever the search begins.
func TestToOfAFastSystem(t *testing.T) {
	for _, to := range []float64{1000, 2000} {
		for _, part := range []float64{0, 0.6, 0.7, 0.8, 0.9, 1} {
			o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute, To: to, From: part * to}
			a, _ := drive(o, func(t Trial, _ int) Outcome { return cliff(t, 100*to) })
			assert.True(t, a.Ending == Highest && a.Holds == to && a.ExitCode(0) == host.ExitOK,
				"to %v from %v: %s, %v holds: %s", to, o.From, a.Ending, a.Holds, a.Why)
		}
	}
}

// A search never offers more than it may. If that holds, it says so and succeeds.
func TestTo(t *testing.T) {
	for _, tt := range []struct {
		name     string
		to, from float64
		server   server
		ending   Ending
		least    float64 // Holds is at least
		most     float64
		code     int
	}{
		{name: "far below the ceiling", to: 500, server: server{service: exponential}, ending: Highest, least: 500, most: 500},
		{name: "from below it", to: 500, from: 400, server: server{service: exponential}, ending: Highest, least: 500, most: 500},
		{name: "from it", to: 500, from: 500, server: server{service: exponential}, ending: Highest, least: 500, most: 500},
		{name: "above the ceiling", to: 1500, server: server{service: exponential}, ending: Found, least: 850, most: 970},
		{name: "far above the ceiling", to: 50_000, server: server{service: exponential}, ending: Found, least: 850, most: 970},
		{name: "a million above the ceiling", to: 1e6, server: server{service: exponential}, ending: Found, least: 850, most: 970},
		{name: "just above the ceiling", to: 1010, server: server{service: constant}, ending: Found, least: 900, most: 1000},
		{name: "fails at low rates", to: 900, server: server{service: constant, delay: batching}, ending: Irregular, code: host.ExitCannotTell},
		{name: "always fails", to: 900, server: server{service: constant, delay: func(*server, float64) float64 { return 1 }}, ending: None, code: host.ExitBroken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := tally{searches: seeds(t, 5)}
			for seed := range c.searches {
				s := newServer(uint64(seed), tt.server.service)
				s.delay = tt.server.delay
				o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 20 * time.Minute, To: tt.to, From: tt.from}
				a, history := s.find(o)
				for i := range history {
					one := history[i].Trial
					assert.True(t, one.Rate <= tt.to && one.Role != Probe, "seed %d: a trial %+v", seed, one)
				}
				if a.Ending != tt.ending || a.Holds < tt.least || a.Holds > tt.most || a.ExitCode(0) != tt.code {
					c.wrongf(t, "seed %d: %s, %v to %v, %d trials in %v: %s", seed, a.Ending, a.Holds, a.Fails, len(a.Trials), a.Elapsed, a.Why)
				}
				assert.True(t, len(a.Trials) <= MostTrials, "seed %d: %d trials", seed, len(a.Trials))
				if text := a.Headline("p99 < 50 ms"); a.Ending == Highest && !strings.HasPrefix(text, "holds at "+units.FormatRate(a.Holds)+" (p99 < 50 ms): it was the highest rate allowed; ") {
					t.Errorf("got %q", text)
				}
			}
			c.check(t)
		})
	}
}
