package stats

import (
	"math"
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
