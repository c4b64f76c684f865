package stats

import (
	"math"
	"slices"
	"testing"

	"carronade/test/testkit/assert"
)

// A base of 0 has no shares: the difference is an amount, and the test decides
// whether there is one.
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
