package stats

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"carronade/internal/testkit"
	"carronade/internal/testkit/assert"
)

// simulations is how many experiments are simulated: a few by default, or as many as the
// variable CARRONADE_TEST_SCREENS says.
func simulations(t *testing.T) int {
	text := os.Getenv("CARRONADE_TEST_SCREENS")
	if text == "" {
		return 20
	}
	n, err := strconv.Atoi(text)
	assert.Must(t, err == nil && n >= 1, "CARRONADE_TEST_SCREENS=%s is not a number of simulations", text)
	return n
}

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
	fit, err := d.Analyze(values, 0)
	assert.OK(t, err)
	JudgeEffects(fit)
	for _, e := range fit.Effects {
		isReal := e.Term.Main() && e.Term.Of[0][0].Factor < effects
		switch {
		case e.Verdict != EffectFound:
		case isReal:
			found = found || e.Term.Of[0][0].Factor == 0 && e.Share > 0
		default:
			wrong = true
		}
	}
	return found, wrong
}

// With noise of 3 % and two repetitions, screens of eight factors find an effect of 5 % in at
// least 80 %, and no false one in at least 95 %, main effect or
// interaction, whether or not anything has an effect. So does a grid of five.
func TestFindsKnownEffects(t *testing.T) {
	n := simulations(t)
	screen, err := Screen(ResolutionIV, letters(8))
	assert.OK(t, err)
	grid, err := Grid(letters(5))
	assert.OK(t, err)
	for _, c := range []struct {
		name string
		d    *Design
		real int
	}{
		{"screen of eight without effects", screen, 0},
		{"screen of eight with one effect", screen, 1},
		{"screen of eight with three effects", screen, 3},
		{"grid of five with one effect", grid, 1},
	} {
		found, wrong := 0, 0
		for seed := range n {
			f, w := simulated(t, c.d, uint64(seed), c.real)
			if f {
				found++
			}
			if w {
				wrong++
			}
		}
		t.Logf("%s: found in %d of %d, a false one in %d", c.name, found, n, wrong)
		assert.True(t, c.real <= 0 || float64(found) >= 0.8*float64(n), "%s: found in %d of %d, want 80 %%", c.name, found, n)
		if float64(wrong) > max(1, 0.05*float64(n)) { // one of twenty is 5 %, too
			t.Errorf("%s: a false effect in %d of %d, want at most 5 %%", c.name, wrong, n)
		}
	}
}

// The cell that is truly the best is chosen, or named as a rival, in 95 % of experiments, also where
// all cells are equal. Cells that are much worse are left out.
func TestBestCell(t *testing.T) {
	d, _ := Grid(letters(3))
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
		if missed > n/20 || kept > n/20 {
			t.Errorf("%g ahead: the best cell is left out in %d of %d, one that is far behind is named in %d", ahead, missed, n, kept)
		}
	}
}

// The interval of an effect includes it in about 95 %, also with a run missing, with drift.
func TestIntervalsInclude(t *testing.T) {
	d, _ := Grid(letters(3))
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
		f, err := d.Analyze(values, 0)
		assert.OK(t, err)
		if e := effectNamed(t, d, f, "B"); e.Lo > simEffect || e.Hi < simEffect {
			missed++
		}
	}
	if share := float64(missed) / n; share < 0.03 || share > 0.07 {
		t.Errorf("intervals missed the effect in %.1f %%, want 5 %%", 100*share)
	}
}
