package stats

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Confidence is how often an interval includes the true value, by default.
const Confidence = 0.95

// An Estimate is the median of a sample. Lo and Hi are infinite if the sample
// is too small to bound it.
type Estimate struct {
	N          int
	Median     float64 // NaN for an empty sample
	Lo, Hi     float64
	Confidence float64 // of the interval, at least the requested one
	Min, Max   float64
}

// Bounded is whether the sample was large enough for an interval.
func (e *Estimate) Bounded() bool { return !math.IsInf(e.Lo, 0) && !math.IsInf(e.Hi, 0) }

// Spread is half the width of the interval, or of the range if there is none,
// as a share of the median: the number after a plus-minus sign. It is NaN for
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

// Median estimates the median of the population of a sample, with the interval
// given by its order statistics: six values are the fewest that bound it at
// 0.95.
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
	if !e.Bounded() { // a bound on one side only does not count
		e.Lo, e.Hi = math.Inf(-1), math.Inf(1)
	}
	return e
}

// A Difference is how far a candidate lies from its base. Relative ones are
// shares of the base: 0.05 is five percent more.
type Difference struct {
	Center   float64
	Lo, Hi   float64 // infinite (-1 and infinite if relative) if there is no bound
	Relative bool
}

// Bounded is whether there is an interval.
func (d *Difference) Bounded() bool { return !math.IsInf(d.Hi, 0) }

// within is whether the whole interval is closer to 0 than x.
func (d *Difference) within(x float64) bool {
	if d.Relative { // x more and x less are equally far from 1 as factors
		return d.Bounded() && d.Hi <= x && d.Lo >= 1/(1+x)-1
	}
	return d.Bounded() && d.Hi <= x && d.Lo >= -x
}

// clipAtZero removes the part of the interval beyond 0: a test that rejects no
// difference rejects those beyond it, too. Only ties, which the interval does
// not account for, leave such a part.
func (d *Difference) clipAtZero() {
	switch {
	case !d.Bounded():
	case d.Center > 0:
		d.Lo = max(d.Lo, 0)
	case d.Center < 0:
		d.Hi = min(d.Hi, 0)
	}
}

// Worst is the effect at the worse end of the interval: an upper limit of how
// much worse the difference is, 0 if it is certainly better, infinite if there
// is no bound.
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

// reaches is whether the difference is at least x, in either direction.
func (d *Difference) reaches(x float64) bool {
	if d.Relative {
		return d.Center >= x || d.Center <= 1/(1+x)-1
	}
	return math.Abs(d.Center) >= x
}

// maxPaired is the largest number of values of a sample used for the
// differences of pairs; of a larger sample, that many order statistics at even
// distances are used.
const maxPaired = 1000

// difference is the Hodges-Lehmann estimate of the shift between two samples,
// the median of all differences of pairs, and its interval: the shifts that the
// U-test does not reject. For positive numbers it is computed in logarithms,
// where the shift is a factor.
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
	k := min((out-1)*len(pairs)/(n*m), (len(pairs)-1)/2) // the same share of thinned samples
	d.Lo, d.Hi = back(pairs[k]), back(pairs[len(pairs)-1-k])
	return d
}

// thin is a sorted copy of a sample, in logarithms if requested, of at most
// maxPaired values.
func thin(sample []float64, logarithms bool) []float64 {
	s := slices.Clone(sample)
	slices.Sort(s)
	if len(s) > maxPaired {
		for i := range maxPaired {
			s[i] = s[i*(len(s)-1)/(maxPaired-1)]
		}
		s = s[:maxPaired]
	}
	if logarithms {
		for i, v := range s {
			s[i] = math.Log(v)
		}
	}
	return s
}
