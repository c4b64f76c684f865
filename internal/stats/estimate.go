package stats

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Confidence is how often an interval holds the truth, unless asked for
// otherwise.
const Confidence = 0.95

// An Estimate is the median of a sample. Lo and Hi are infinite where the
// sample is too small to bound it.
type Estimate struct {
	N          int
	Median     float64 // NaN of nothing
	Lo, Hi     float64
	Confidence float64 // of the interval, which is at least what was asked for
	Min, Max   float64
}

// Bounded is whether the sample was large enough for an interval.
func (e *Estimate) Bounded() bool { return !math.IsInf(e.Lo, 0) && !math.IsInf(e.Hi, 0) }

// Spread is the half of the interval, or of the range where there is none, as
// a share of the median: what stands behind a plus-minus sign. It is NaN of
// fewer than two values.
func (e *Estimate) Spread() float64 {
	switch {
	case e.N < 2 || e.Median == 0:
		return math.NaN()
	case e.Bounded():
		return (e.Hi - e.Lo) / 2 / math.Abs(e.Median)
	}
	return (e.Max - e.Min) / 2 / math.Abs(e.Median)
}

// Median estimates the median of what the sample was drawn from, with the
// interval that the order statistics give it: six values are the fewest that
// bound it at 0.95.
func Median(sample []float64, confidence float64) Estimate {
	if len(sample) == 0 {
		nan, inf := math.NaN(), math.Inf(1)
		return Estimate{Median: nan, Lo: -inf, Hi: inf, Min: nan, Max: nan}
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(sample), &benchmath.DefaultThresholds), confidence)
	e := Estimate{
		N: len(sample), Median: s.Center, Lo: s.Lo, Hi: s.Hi, Confidence: s.Confidence,
		Min: slices.Min(sample), Max: slices.Max(sample),
	}
	if !e.Bounded() { // a bound on one side alone is none
		e.Lo, e.Hi = math.Inf(-1), math.Inf(1)
	}
	return e
}

// A Difference is how far a candidate lies from its base. Relative ones are
// shares of the base: 0.05 is five percent more.
type Difference struct {
	Center   float64
	Lo, Hi   float64 // infinite (-1 and infinite of a relative one) where there is no bound
	Relative bool
}

// Bounded is whether there is an interval.
func (d *Difference) Bounded() bool { return !math.IsInf(d.Hi, 0) }

// within is whether the whole interval lies closer to nothing than x.
func (d *Difference) within(x float64) bool {
	if d.Relative { // x more and x less are as far from 1, seen as factors
		return d.Bounded() && d.Hi <= x && d.Lo >= 1/(1+x)-1
	}
	return d.Bounded() && d.Hi <= x && d.Lo >= -x
}

// deny takes out of the interval what lies on the other side of nothing: a test
// that denies no difference denies those beyond it, too. Only values that are
// equal (ties), which the interval is not counted with, leave any there.
func (d *Difference) deny() {
	switch {
	case !d.Bounded():
	case d.Center > 0:
		d.Lo = max(d.Lo, 0)
	case d.Center < 0:
		d.Hi = min(d.Hi, 0)
	}
}

// Worst is the effect at the worse end of the interval: the difference is worse
// by no more than that, 0 if it is better for certain, infinite where there is
// no bound.
func (d *Difference) Worst(better Direction) float64 {
	switch {
	case !d.Bounded():
		return math.Inf(1)
	case better == Less:
		return max(0, d.Hi)
	case d.Relative:
		return max(0, 1/(1+d.Lo)-1)
	}
	return max(0, -d.Lo)
}

// reaches is whether the difference itself is at least x, in either direction.
func (d *Difference) reaches(x float64) bool {
	if d.Relative {
		return d.Center >= x || d.Center <= 1/(1+x)-1
	}
	return math.Abs(d.Center) >= x
}

// most is how many values of a sample take part in the differences of pairs;
// of more, as many order statistics at even distances.
const most = 1000

// difference is the Hodges-Lehmann estimate of the shift between two samples,
// the median of all differences of pairs, and its interval: those shifts that
// the U-test does not deny. On positive numbers it is done in logarithms, where
// the shift is a factor.
func difference(base, candidate []float64, relative bool, confidence float64) Difference {
	d := Difference{Center: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), Relative: relative}
	if relative {
		d.Lo = -1
	}
	n, m := len(base), len(candidate)
	if n == 0 || m == 0 {
		return d
	}
	x, y := thin(base, relative), thin(candidate, relative)
	pairs := make([]float64, 0, len(x)*len(y))
	for _, a := range x {
		for _, b := range y {
			pairs = append(pairs, b-a)
		}
	}
	slices.Sort(pairs)
	back := func(v float64) float64 {
		if relative {
			return math.Expm1(v)
		}
		return v
	}
	d.Center = back((pairs[(len(pairs)-1)/2] + pairs[len(pairs)/2]) / 2)
	out := rejected(n, m, 1-confidence) // pairs beyond the interval, on either side
	if out <= 0 {
		return d
	}
	k := min((out-1)*len(pairs)/(n*m), (len(pairs)-1)/2) // the same share, of thinned samples
	d.Lo, d.Hi = back(pairs[k]), back(pairs[len(pairs)-1-k])
	return d
}

// thin is a sorted copy of a sample, in logarithms if asked, of at most so
// many values.
func thin(sample []float64, logarithms bool) []float64 {
	s := slices.Clone(sample)
	slices.Sort(s)
	if len(s) > most {
		for i := range most {
			s[i] = s[i*(len(s)-1)/(most-1)]
		}
		s = s[:most]
	}
	if logarithms {
		for i, v := range s {
			s[i] = math.Log(v)
		}
	}
	return s
}
