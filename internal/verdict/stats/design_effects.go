package stats

import (
	"errors"
	"fmt"
	"math"

	moremath "github.com/aclements/go-moremath/stats"
)

// Errors of Analyze.
var (
	ErrEmptyCell   = errors.New("a value is missing")
	ErrNotPositive = errors.New("a value is not above 0, so that there are no ratios")
	ErrNoNoise     = errors.New("no cell has two values, so that the noise is unknown")
)

// An Effect is the estimate of a term as a share: -0.31 is 31 % less. Of an interaction it is
// how much the effect of one change grows with the other.
type Effect struct {
	Term     Term
	Share    float64
	Lo, Hi   float64 // the interval of Confidence
	P        float64 // of the test for no effect
	Adjusted float64 // P adjusted for the effects it was judged with
	Verdict  EffectVerdict
}

// An EffectVerdict is whether an effect is real.
type EffectVerdict string

// The verdicts.
const (
	EffectFound EffectVerdict = "effect"
	NoEffect    EffectVerdict = "no effect found"
	// EffectUnsure effects would count alone, but among as many as were tested such a one is
	// expected by chance.
	EffectUnsure EffectVerdict = "not certain"
)

// mostLog keeps ratios finite if hardly anything is known of the noise.
const mostLog = 700

// An Analysis is what one number says about a design.
type Analysis struct {
	Effects []Effect  // in the order of Terms
	Means   []float64 // of the cells, geometric; without the shifts of rounds if some values are missing
	Noise   float64   // standard deviation between repetitions of a cell, as a share
	Degrees int       // of freedom, of the noise

	rounds   *rounds
	variance float64 // of a logarithm
}

// Analyze estimates all effects on one number. values has the values of each cell by round; NaN
// marks one that is missing. What the values of a round have in common is taken away, so that
// drift does not count as noise. The noise is at least least, a share: the error of each value,
// if that is known.
func (d *Design) Analyze(values [][]float64, least float64) (*Analysis, error) {
	if len(values) != len(d.Cells) {
		return nil, fmt.Errorf("%d cells have values, and the design has %d", len(values), len(d.Cells))
	}
	n := len(values)
	f := &Analysis{Means: make([]float64, n)}
	logs, counts := make([][]float64, n), make([]int, n)
	total := 0
	for i, cell := range values {
		logs[i] = make([]float64, len(cell))
		for r, v := range cell {
			if math.IsNaN(v) {
				logs[i][r] = v
				continue
			}
			if !(v > 0) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("cell %d: %w", i+1, ErrNotPositive)
			}
			logs[i][r] = math.Log(v)
			f.Means[i] += logs[i][r]
			counts[i]++
		}
		if counts[i] == 0 {
			return nil, fmt.Errorf("cell %d: %w", i+1, ErrEmptyCell)
		}
		f.Means[i] /= float64(counts[i])
		total += counts[i]
	}
	f.rounds = shifts(logs, f.Means, counts)
	if f.Degrees = total - n - f.rounds.rank; f.Degrees < 1 {
		return nil, ErrNoNoise
	}
	for i, cell := range logs {
		f.Means[i] -= f.rounds.mean(i)
		for r, v := range cell {
			if !math.IsNaN(v) {
				rest := v - f.Means[i] - f.rounds.shift[r]
				f.variance += rest * rest / float64(f.Degrees)
			}
		}
	}
	if f.variance < 1e-24 { // what rounding leaves of equal values
		f.variance = 0
	}
	f.variance = max(f.variance, least*least)
	f.Noise = math.Sqrt(f.variance)
	for _, t := range d.Terms() {
		center, reach, p := f.contrast(f.Means, t.weights)
		f.Effects = append(f.Effects, Effect{
			Term: t, Share: math.Expm1(min(center, mostLog)), Lo: math.Expm1(center - reach), Hi: math.Expm1(min(center+reach, mostLog)),
			P: p, Adjusted: p,
		})
	}
	for i := range f.Means {
		f.Means[i] = math.Exp(f.Means[i])
	}
	return f, nil
}

// GeometricMean is that of the values that are not missing (NaN). It is false if there are none, or one is
// not above 0.
func GeometricMean(values []float64) (mean float64, ok bool) {
	n := 0.0
	for _, v := range values {
		if math.IsNaN(v) {
			continue
		}
		if !(v > 0) {
			return 0, false
		}
		mean, n = mean+math.Log(v), n+1
	}
	return math.Exp(mean / max(n, 1)), n > 0
}

// contrast estimates a weighted sum of the logarithms of the cells' means: its value, half the
// width of its interval, and the probability of a value as far from 0 if it were 0.
func (f *Analysis) contrast(logs, weights []float64) (center, reach, p float64) {
	for i, w := range weights {
		center += w * logs[i]
	}
	if math.Abs(center) < 1e-12 { // what rounding leaves of equal means
		center = 0
	}
	scatter := math.Sqrt(f.variance * f.rounds.variance(weights))
	if scatter == 0 {
		if center == 0 {
			return 0, 0, 1
		}
		return center, 0, 0
	}
	t := moremath.TDist{V: float64(f.Degrees)}
	reach = scatter * moremath.InvCDF(t)((1+Confidence)/2)
	return center, reach, 2 * (1 - t.CDF(math.Abs(center)/scatter))
}

// JudgeEffects gives the verdicts. All effects on the number that decides, that of the first fit, are
// one family; those on the other numbers are exploratory and a second one. In each family a
// false effect is found in at most Defaults.Alpha of experiments, by Holm's procedure.
func JudgeEffects(fits ...*Analysis) {
	var families [2][]*Effect
	for i, f := range fits {
		for k := range f.Effects {
			e := &f.Effects[k]
			families[min(i, 1)] = append(families[min(i, 1)], e)
		}
	}
	for _, family := range families {
		p := make([]float64, len(family))
		for i, e := range family {
			p[i] = e.P
		}
		for i, v := range Holm(p) {
			e := family[i]
			e.Adjusted = v
			switch {
			case v <= Defaults.Alpha:
				e.Verdict = EffectFound
			case e.P <= Defaults.Alpha:
				e.Verdict = EffectUnsure
			default:
				e.Verdict = NoEffect
			}
		}
	}
}

// Best returns the cell with the best mean, and its rivals: the cells that may be the best one as
// well. The cell that is truly the best is among them or is best itself in all but
// Defaults.Alpha of experiments (Hsu's comparisons with the best, with Bonferroni's bound). A
// cell is left out if the best one is better by a one-sided test. That would be wrong for the true
// best only if one of the other n-1 seemed better than it, hence the factor.
func (f *Analysis) Best(better Direction) (best int, rivals []int) {
	n := len(f.Means)
	logs := make([]float64, n)
	for i, m := range f.Means {
		logs[i] = math.Log(m)
		if (m-f.Means[best])*float64(better) > 0 {
			best = i
		}
	}
	for i := range n {
		if i == best {
			continue
		}
		w := make([]float64, n)
		w[best], w[i] = 1, -1
		if _, _, p := f.contrast(logs, w); p/2*float64(n-1) > Defaults.Alpha {
			rivals = append(rivals, i)
		}
	}
	return best, rivals
}
