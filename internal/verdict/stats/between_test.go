package stats

import (
	"math"
	"slices"
	"testing"

	"carronade/test/testkit/assert"
)

// scaled is a sample times a factor.
func scaled(sample []float64, factor float64) (out []float64) {
	for _, v := range sample {
		out = append(out, v*factor)
	}
	return out
}

// A difference counts only beyond what groups of equal runs may differ by, in both directions and in all
// scales; the interval is that of the difference itself.
func TestRowBetween(t *testing.T) {
	sample := []float64{99, 99.5, 99.9, 100.1, 100.5, 101}
	few := []float64{99, 100, 101}
	for _, tt := range []struct {
		name            string
		base, candidate []float64
		between         float64
		amount          bool
		want            Verdict
		reason          Reason
	}{
		{"less than they may differ", sample, scaled(sample, 1.045), 0.05, false, Unknown, Apart},
		{"the same without that", sample, scaled(sample, 1.045), 0, false, Worse, ""},
		{"hardly more", sample, scaled(sample, 1.055), 0.05, false, Unknown, Apart},
		{"more", sample, scaled(sample, 1.09), 0.05, false, Worse, ""},
		{"less of it", sample, scaled(sample, 1/1.045), 0.05, false, Unknown, Apart},
		{"much less of it", sample, scaled(sample, 1/1.09), 0.05, false, Better, ""},
		{"below the effect", sample, scaled(sample, 1.005), 0.05, false, Same, ""},
		{"few, by a half", few, scaled(few, 1.5), 0.05, false, Unknown, TooFew},
		{"few, by a half, in turns", few, scaled(few, 1.5), 0, false, Worse, ""},
		{"few, by far", few, scaled(few, 2.2), 0.05, false, Worse, ""},
		{"with zeros, by less", append([]float64{0}, sample...), scaled(append([]float64{100}, sample...), 1.02), 0.05, false, Unknown, ""},
		{"amounts do not differ with time", []float64{0, 0, 0, 0, 0, 0}, scaled(sample, 1e-3), 0.05, true, Worse, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Family([]Row{{Base: tt.base, Candidate: tt.candidate, Better: Less, Between: tt.between, Amount: tt.amount}}, Options{Effect: 0.02, Few: 3})[0]
			plain := Family([]Row{{Base: tt.base, Candidate: tt.candidate, Better: Less, Amount: tt.amount}}, Options{Effect: 0.02, Few: 3})[0]
			assert.True(t, c.Verdict == tt.want && (tt.reason == "" || c.Doubt.Reason == tt.reason), "got %s (%+v), p %v, %+v", c.Verdict, c.Doubt, c.P, c.Difference)
			assert.True(t, c.Difference == plain.Difference, "the interval is %+v, and %+v in turns", c.Difference, plain.Difference)
		})
	}
}

// The same holds for a new level of a history.
func TestPredictionBetween(t *testing.T) {
	var history [][]float64
	for _, v := range []float64{99, 101, 100, 99.5, 100.5, 100} {
		history = append(history, []float64{v})
	}
	for _, tt := range []struct {
		now, between float64
		want         Verdict
	}{{104, 0, Worse}, {104, 0.05, Unknown}, {110, 0.05, Worse}, {90, 0.05, Better}} {
		c := Family([]Row{{History: history, Candidate: []float64{tt.now}, Better: Less, Between: tt.between}}, Options{Effect: 0.02})[0]
		assert.True(t, c.Predicted && c.Verdict == tt.want, "%v within %v: got %s (%+v), p %v", tt.now, tt.between, c.Verdict, c.Doubt, c.P)
	}
}

// Groups show how far groups are apart if there are enough of them. A real change among them does not count,
// and drift over many of them does not either.
func TestBetween(t *testing.T) {
	of := func(levels ...float64) (out [][]float64) {
		for _, v := range levels {
			out = append(out, []float64{v, v, v})
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		groups [][]float64
		want   float64
		ok     bool
	}{
		{"too few", of(100, 110, 100), 0, false},
		{"by 10 %", of(100, 110, 100, 110), math.Pow(1.1, reach) - 1, true},
		{"a change among them", of(100, 101, 100, 101, 200, 202, 200), math.Pow(1.01, reach) - 1, true},
		{"none", of(100, 100, 100, 100, 100), 0, true},
		{"zeros", of(0, 100, 100, 100), 0, false},
		{"an empty one", append(of(100, 110, 100, 110), nil), math.Pow(1.1, reach) - 1, true},
	} {
		got, ok := Between(tt.groups)
		assert.True(t, ok == tt.ok && math.Abs(got-tt.want) < 1e-9, "%s: got %v, %t, want %v, %t", tt.name, got, ok, tt.want, tt.ok)
	}
}

func TestFitLine(t *testing.T) {
	for _, tt := range []struct {
		name string
		x, y []float64
		want Line
		ok   bool
	}{
		{"exact", []float64{1, 2, 3, 4}, []float64{5, 7, 9, 11}, Line{2, 3, 0}, true},
		{"above 0", []float64{1, 2, 3, 4}, []float64{3, 5, 7, 9}, Line{2, 1, 0}, true},
		{"with a residual", []float64{0, 1, 2}, []float64{0, 3, 0}, Line{0, 1, math.Sqrt(3)}, true},
		{"two points", []float64{1, 3}, []float64{1, 2}, Line{0.5, 0.5, math.NaN()}, true},
		{"one x", []float64{2, 2, 2}, []float64{1, 2, 3}, Line{}, false},
		{"one point", []float64{2}, []float64{1}, Line{}, false},
		{"no point", nil, nil, Line{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := FitLine(len(tt.x), func(i int) (x, y float64) { return tt.x[i], tt.y[i] })
			same := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 || math.IsNaN(a) && math.IsNaN(b) }
			assert.True(t, ok == tt.ok && same(got.Slope, tt.want.Slope) && same(got.Intercept, tt.want.Intercept) &&
				same(got.Error, tt.want.Error), "got %+v, %v, want %+v, %v", got, ok, tt.want, tt.ok)
		})
	}
}

// Fisher's tea tasting: in four of eight cups the milk was poured first.
func TestMoreOften(t *testing.T) {
	for _, tt := range []struct {
		name                               string
		base, baseTrials, candidate, among int
		want                               float64
	}{
		{"all recognized", 0, 4, 4, 4, 1.0 / 70},
		{"three recognized", 1, 4, 3, 4, 17.0 / 70},
		{"none", 0, 4, 0, 4, 1},
		{"all of both sides", 4, 4, 3, 3, 1},
		{"one of one", 0, 12, 1, 1, 1.0 / 13},
		{"no base", 0, 0, 3, 3, 1},
		{"no candidate", 0, 3, 0, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := MoreOften(tt.base, tt.baseTrials, tt.candidate, tt.among)
			assert.True(t, math.Abs(got-tt.want) <= 1e-12, "got %v, want %v", got, tt.want)
		})
	}
}

// A base of 0 has no shares: the difference is an amount, and the test decides whether there is one.
func TestEffectOfZero(t *testing.T) {
	zeros := make([]float64, 8)
	for _, tt := range []struct {
		name            string
		base, candidate []float64
		amount          bool
		want            Verdict
		relative, any   bool
		effect          float64
	}{
		{name: "a share of a positive base", base: around(8, 100, 0.01), candidate: around(8, 110, 0.01), want: Worse, relative: true, effect: 0.03},
		{name: "from 0, by very little, for certain", base: zeros, candidate: around(8, 1e-6, 0.1), want: Worse, any: true},
		{name: "from 0 and at 0", base: zeros, candidate: zeros, want: Same, any: true},
		{name: "from 0, one of eight is not", base: zeros, candidate: append([]float64{4}, zeros[1:]...), want: Same, any: true},
		{name: "one outage in a base of 100", base: append([]float64{0}, around(7, 100, 0.01)...), candidate: around(8, 101, 0.01), want: Same, effect: 0.03 * 99.9},
		{name: "to 0", base: around(8, 100, 0.01), candidate: zeros, want: Better, effect: 3},
		{name: "a requested amount", base: zeros, candidate: around(8, 0.01, 0.1), amount: true, want: Same, effect: 0.03},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Family([]Row{{Base: tt.base, Candidate: tt.candidate, Better: Less, Amount: tt.amount}}, Options{})[0]
			if c.Verdict != tt.want || c.Difference.Relative != tt.relative || c.AnyChange != tt.any || math.Abs(c.Effect-tt.effect) > 0.1 {
				t.Errorf("got %v, relative %v, any change %v, effect %v; want %v, %v, %v, %v: %+v",
					c.Verdict, c.Difference.Relative, c.AnyChange, c.Effect, tt.want, tt.relative, tt.any, tt.effect, c.Difference)
			}
		})
	}
}

func TestChange(t *testing.T) {
	for _, tt := range []struct {
		name                string
		before, after, want float64
		relative            bool
	}{
		{"a tenth more", 100, 110, 0.1, true},
		{"half of it", 100, 50, -0.5, true},
		{"to nothing", 100, 0, -1, true},
		{"from nothing", 0, 50, 50, false},
		{"nothing", 0, 0, 0, false},
		{"below nothing", -4, -2, 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := Change(tt.before, tt.after); math.Abs(d.Center-tt.want) > 1e-12 || d.Relative != tt.relative {
				t.Errorf("got %+v, want %v, relative %v", d, tt.want, tt.relative)
			}
		})
	}
}

// If one revision of a long series was an outage, steps are still shares of
// their levels, and those too small to name do not count.
func TestStepsBesideAnOutage(t *testing.T) {
	series := slices.Concat(around(15, 100, 0.002), around(15, 101, 0.002), around(15, 150, 0.002))
	series[7] = 0
	steps := Steps(series, StepOptions{Alpha: 0.05, Effect: 0.03, Least: 3})
	assert.True(t, len(steps) == 1 && steps[0].At == 30 && steps[0].Relative && math.Abs(steps[0].Change-0.49) <= 0.02,
		"got %+v, want one step of +50%% at 30", steps)
	up := slices.Concat(make([]float64, 10), around(10, 40, 0.01))
	if steps = Steps(up, StepOptions{Alpha: 0.05, Effect: 0.03, Least: 3}); len(steps) != 1 || steps[0].Relative || math.Abs(steps[0].Change-40) > 1 {
		t.Errorf("got %+v, want one step by 40", steps)
	}
}
