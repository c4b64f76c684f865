package stats

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"carronade/test/testkit"
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
	assert.True(t, f.Noise <= 1e-9 && f.Degrees == 13-4-3, "noise %g with %d degrees, want none with 6", f.Noise, f.Degrees)
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
	e := effectNamed(t, d, f, "A")
	assert.True(t, f.Noise == 0.03 && e.Verdict == NoEffect && math.Abs(math.Log(e.Hi+1)-math.Log(1.02)-2*0.03/math.Sqrt(12)*2.4469) <= 1e-4, "noise %g, %+v", f.Noise, e)
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
	e := effectNamed(t, d, f, "A")
	assert.True(t, math.Abs(e.Share-1) <= 0.02 && f.Degrees == 5, "A %g with %d degrees, want about 1 with 5", e.Share, f.Degrees)
	_, err := d.Analyze(with(1, 2, 0), 0)
	assert.True(t, errors.Is(err, ErrNotPositive), "with a zero: %v", err)
	empty := with(0, 0, 1)
	empty[2] = []float64{math.NaN(), math.NaN(), math.NaN()}
	_, err = d.Analyze(empty, 0)
	assert.True(t, errors.Is(err, ErrEmptyCell), "without a cell: %v", err)
	_, err = d.Analyze(made(d, 1, func([]int, int) float64 { return 1 }), 0)
	assert.True(t, errors.Is(err, ErrNoNoise), "with one round: %v", err)
}

// letters returns two-valued factors.
func letters(n int) []Factor {
	var out []Factor
	for i := range n {
		out = append(out, Factor{Name: string(rune('A' + i)), Values: []string{"low", "high"}})
	}
	return out
}

// A design has each combination once, and is refused when it is too large.
func TestNewDesign(t *testing.T) {
	d := assert.Value(NewDesign([]Factor{{"a", []string{"1", "2"}}, {"b", []string{"x", "y", "z"}}}))(t)
	var got []string
	for i := range d.Cells {
		got = append(got, fmt.Sprint(d.Settings(i)))
	}
	want := []string{"[a=1 b=x]", "[a=1 b=y]", "[a=1 b=z]", "[a=2 b=x]", "[a=2 b=y]", "[a=2 b=z]"}
	assert.True(t, slices.Equal(got, want), "cells %v, want %v", got, want)
	assert.Equal(t, d.Rounds(), 3, "rounds")
	d, err := NewDesign(letters(5))
	assert.True(t, err == nil && len(d.Cells) == MaxCells && d.Rounds() == 2, "five factors: %v, want %d cells twice", err, MaxCells)
	for n, want := range map[int]string{6: "2 x 2 x 2 x 2 x 2 x 2 values are 64 combinations, and at most 32 can run", 70: "are 1180591620717411303424 combinations"} {
		_, err := NewDesign(letters(n))
		assert.ErrorHas(t, err, want, "%d factors", n)
	}
}

// Each round has every cell, the seed decides the order, and the rounds differ.
func TestOrder(t *testing.T) {
	d, _ := NewDesign(letters(3))
	order := d.Order(4, 7)
	for i, round := range order {
		sorted := slices.Sorted(slices.Values(round))
		assert.True(t, slices.Equal(sorted, []int{0, 1, 2, 3, 4, 5, 6, 7}), "round %d runs %v", i, round)
	}
	assert.True(t, !slices.Equal(order[0], order[1]) || !slices.Equal(order[1], order[2]), "all rounds have one order")
	assert.True(t, fmt.Sprint(d.Order(4, 7)) == fmt.Sprint(order) && fmt.Sprint(d.Order(4, 8)) != fmt.Sprint(order),
		"the seed does not decide the order")
}

// The noise of the simulated systems, the effect to find, and the repetitions.
const (
	simNoise  = 0.03
	simEffect = 0.05
	simRounds = 2
)

// simulated runs an experiment on a system of which the first factors have an effect. Drift makes later rounds slower. It returns
// whether the effect of the first was found, and whether anything was found that is not real.
func simulated(t *testing.T, d *Design, seed uint64, effects int) (found, wrong bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	order := d.Order(simRounds, seed)
	values := make([][]float64, len(d.Cells))
	for i := range values {
		values[i] = make([]float64, simRounds)
	}
	for round, cells := range order {
		for _, c := range cells {
			log := math.Log(50_000) - 0.05*float64(round) + simNoise*r.NormFloat64()
			for f := range effects {
				log += math.Log1p(simEffect) * float64(d.Cells[c][f])
			}
			values[c][round] = math.Exp(log)
		}
	}
	fit := assert.Value(d.Analyze(values, 0))(t)
	JudgeEffects(fit)
	for _, e := range fit.Effects {
		isReal := e.Term.Main() && e.Term.Of[0].Factor < effects
		switch {
		case e.Verdict != EffectFound:
		case isReal:
			found = found || e.Term.Of[0].Factor == 0 && e.Share > 0
		default:
			wrong = true
		}
	}
	return found, wrong
}

// With noise of 3 % and two repetitions, an effect of 5 % of one of five settings is found in at least 95 %
// of experiments, and of one of four in 75 %. A false effect, of a setting or an interaction, is found in at
// most 5 %, whether or not anything has an effect.
func TestFindsKnownEffects(t *testing.T) {
	const n = 200
	for _, tt := range []struct {
		factors, effects int
		least            float64 // share of experiments that find the effect
	}{{5, 0, 0}, {5, 1, 0.95}, {5, 3, 0.95}, {4, 1, 0.75}} {
		d := assert.Value(NewDesign(letters(tt.factors)))(t)
		found, wrong := 0, 0
		for seed := range uint64(n) {
			f, w := simulated(t, d, seed, tt.effects)
			if f {
				found++
			}
			if w {
				wrong++
			}
		}
		t.Logf("%d settings with %d effects: found in %d of %d, a false one in %d", tt.factors, tt.effects, found, n, wrong)
		assert.True(t, float64(found) >= tt.least*n && float64(wrong) <= 0.05*n,
			"%d settings with %d effects: found in %d of %d, a false one in %d", tt.factors, tt.effects, found, n, wrong)
	}
}

// The cell that is truly the best is chosen, or named as a rival, in 95 % of experiments, also where
// all cells are equal. Cells that are much worse are left out.
func TestBestCell(t *testing.T) {
	d, _ := NewDesign(letters(3))
	const truly, bad = 5, 2
	n := testkit.Cases(2000, 300)
	for _, ahead := range []float64{0, 0.5 * simNoise, 2 * simNoise} {
		missed, kept := 0, 0
		for seed := range uint64(n) {
			r := rand.New(rand.NewPCG(seed, 3))
			cell := -1
			f := assert.Value(d.Analyze(made(d, 2, func(_ []int, round int) float64 {
				if round == 0 {
					cell++
				}
				log := simNoise * r.NormFloat64()
				switch cell {
				case truly:
					log += ahead
				case bad:
					log -= 20 * simNoise
				}
				return math.Exp(log)
			}), 0))(t)
			best, rivals := f.Best(More)
			if best != truly && !slices.Contains(rivals, truly) {
				missed++
			}
			if best == bad || slices.Contains(rivals, bad) {
				kept++
			}
		}
		assert.True(t, missed <= n/20 && kept <= n/20,
			"%g ahead: the best cell is left out in %d of %d, one that is far behind is named in %d", ahead, missed, n, kept)
	}
}

// The interval of an effect includes it in about 95 %, also with a run missing, with drift.
func TestIntervalsInclude(t *testing.T) {
	d, _ := NewDesign(letters(3))
	const n = 2000
	missed := 0
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 2))
		values := made(d, 2, func(c []int, round int) float64 {
			return math.Exp(math.Log1p(simEffect)*float64(c[1]) - 0.2*float64(round) + simNoise*r.NormFloat64())
		})
		if seed%2 == 1 {
			values[seed%8][seed/8%2] = math.NaN()
		}
		f := assert.Value(d.Analyze(values, 0))(t)
		if e := effectNamed(t, d, f, "B"); e.Lo > simEffect || e.Hi < simEffect {
			missed++
		}
	}
	share := float64(missed) / n
	assert.True(t, share >= 0.03 && share <= 0.07, "intervals missed the effect in %.1f %%, want 5 %%", 100*share)
}
