package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// The noise of the simulated systems, the effect to find, and the repetitions.
const (
	simNoise  = 0.03
	simEffect = 0.05
	simRounds = 2
)

// simulated runs an experiment on a system of which the first factors have an effect. Drift
// makes later rounds slower. It returns whether the effect of the first was found, and whether
// anything was found that is not real.
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
	}{
		{5, 0, 0}, {5, 1, 0.95}, {5, 3, 0.95}, {4, 1, 0.75},
	} {
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
			f, err := d.Analyze(made(d, 2, func(_ []int, round int) float64 {
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
			}), 0)
			assert.OK(t, err)
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
