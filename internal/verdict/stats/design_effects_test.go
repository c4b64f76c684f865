package stats

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// name is a term's name, such as "A", "B:2" and "A*B".
func (t *Term) name(d *Design) string {
	var all []string
	for _, c := range t.Of {
		text := d.Factors[c.Factor].Name
		if c.To > 1 {
			text += ":" + string(rune('0'+c.To))
		}
		all = append(all, text)
	}
	return strings.Join(all, "*")
}

// made returns values without noise: a level times a factor for each change that a cell has.
func made(d *Design, rounds int, of func(cell []int, round int) float64) [][]float64 {
	out := make([][]float64, len(d.Cells))
	for i, cell := range d.Cells {
		for r := range rounds {
			out[i] = append(out[i], of(cell, r))
		}
	}
	return out
}

func effectNamed(t *testing.T, d *Design, f *Analysis, name string) *Effect {
	t.Helper()
	for i := range f.Effects {
		if f.Effects[i].Term.name(d) == name {
			return &f.Effects[i]
		}
	}
	t.Fatalf("no term %s", name)
	return nil
}

// Known effects come out exactly: main effects of two and of three values, and an interaction.
// What all cells of a round have in common is not noise.
func TestKnownEffects(t *testing.T) {
	d, _ := NewDesign([]Factor{{"A", []string{"1", "2"}}, {"B", []string{"1", "2", "3"}}, {"C", []string{"1", "2"}}})
	values := made(d, 2, func(c []int, round int) float64 {
		v := 1000 * math.Pow(0.69, float64(c[0])) * []float64{1, 1.2, 3}[c[1]] * (1 + 0.5*float64(round))
		if c[0] == 1 && c[2] == 1 {
			v *= 1.21
		}
		return v
	})
	f := assert.Value(d.Analyze(values, 0))(t)
	JudgeEffects(f)
	assert.True(t, f.Noise <= 1e-9 && f.Degrees == 11, "noise %g with %d degrees, want none with 11", f.Noise, f.Degrees)
	for name, want := range map[string]float64{"A": 0.69*1.1 - 1, "B": 0.2, "B:2": 2, "C": 0.1, "A*C": 0.21, "A*B": 0, "B:2*C": 0} {
		e := effectNamed(t, d, f, name)
		assert.True(t, math.Abs(e.Share-want) <= 1e-9 && (e.Verdict == EffectFound) == (want != 0),
			"%s: %g, %s, want %g", name, e.Share, e.Verdict, want)
	}
	best, rivals := f.Best(More)
	want := []string{"A=1", "B=3", "C=1"}
	assert.True(t, slices.Equal(d.Settings(best), want), "best %v, want %v", d.Settings(best), want)
	assert.True(t, len(rivals) == 1 && slices.Equal(d.Settings(rivals[0]), []string{"A=1", "B=3", "C=2"}),
		"rivals %v, want the same with C=2", rivals)
}

// Where values are missing, drift is distinguished from the effects, and the noise stays that within
// rounds. Rounds that share too few cells are not distinguished from noise.
func TestDriftWithMissingValues(t *testing.T) {
	d, _ := NewDesign(letters(2))
	values := made(d, 4, func(c []int, round int) float64 { return 100 * float64(1+c[0]) * math.Pow(2, -float64(round)) })
	values[0][3], values[1][0], values[3][0] = math.NaN(), math.NaN(), math.NaN()
	f, err := d.Analyze(values, 0)
	assert.OK(t, err)
	assert.True(t, f.Noise <= 1e-9 && f.Degrees == 13-4-3,
		"noise %g with %d degrees, want none with 6", f.Noise, f.Degrees)
	for name, want := range map[string]float64{"A": 1, "B": 0, "A*B": 0} {
		e := effectNamed(t, d, f, name)
		assert.True(t, math.Abs(e.Share-want) <= 1e-9, "%s: %g, want %g", name, e.Share, want)
	}
	for i := range values {
		values[i] = []float64{1 + float64(i), math.NaN(), 2, math.NaN()}
		if i > 1 {
			values[i] = []float64{math.NaN(), 3 + float64(i), math.NaN(), 5}
		}
	}
	if f, err = d.Analyze(values, 0); err != nil || f.Degrees != 4 {
		t.Errorf("two groups that share no round: %v, %+v; want 4 degrees, of the noise with drift", err, f)
	}
}

// Values that agree better than their own errors have the noise of these errors.
func TestLeastNoise(t *testing.T) {
	d, _ := NewDesign(letters(2))
	values := made(d, 3, func(c []int, _ int) float64 { return 100 * (1 + 0.02*float64(c[0])) })
	f := assert.Value(d.Analyze(values, 0.03))(t)
	JudgeEffects(f)
	// 2 x 0.03/sqrt(12) x t(0.975, 6)
	if e := effectNamed(t, d, f, "A"); f.Noise != 0.03 || e.Verdict != NoEffect || math.Abs(math.Log(e.Hi+1)-math.Log(1.02)-2*0.03/math.Sqrt(12)*2.4469) > 1e-4 {
		t.Errorf("noise %g, %+v", f.Noise, e)
	}
}

// A missing value leaves the others; a cell without any, and values without ratios, do not.
func TestIncomplete(t *testing.T) {
	d, _ := NewDesign(letters(2))
	with := func(cell, round int, v float64) [][]float64 {
		values := made(d, 3, func(c []int, round int) float64 { return 100 * float64(1+c[0]) * (1 + 0.01*float64(round%2)) })
		values[cell][round] = v
		return values
	}
	f := assert.Value(d.Analyze(with(1, 2, math.NaN()), 0))(t)
	if e := effectNamed(t, d, f, "A"); math.Abs(e.Share-1) > 0.02 || f.Degrees != 5 {
		t.Errorf("A %g with %d degrees, want about 1 with 5", e.Share, f.Degrees)
	}
	_, err := d.Analyze(with(1, 2, 0), 0)
	assert.True(t, errors.Is(err, ErrNotPositive), "with a zero: %v", err)
	empty := with(0, 0, 1)
	empty[2] = []float64{math.NaN(), math.NaN(), math.NaN()}
	_, err = d.Analyze(empty, 0)
	assert.True(t, errors.Is(err, ErrEmptyCell), "without a cell: %v", err)
	_, err = d.Analyze(made(d, 1, func([]int, int) float64 { return 1 }), 0)
	assert.True(t, errors.Is(err, ErrNoNoise), "with one round: %v", err)
}
