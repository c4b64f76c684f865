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
	Lo, Hi   float64 // infinite (-1 and infinite if relative) if unbounded
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

// straddles is whether 0 is inside the interval.
func (d *Difference) straddles() bool { return d.Lo < 0 && d.Hi > 0 }

// Worst is the effect at the worse end of the interval: an upper limit of how
// much worse the difference is, 0 if it is certainly better, infinite if it
// is unbounded.
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

// unknownDifference is that of a sample without values.
func unknownDifference() Difference {
	return Difference{Center: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1)}
}

// A shift is how far one sample lies from another, in logarithms if the
// difference is relative, with the interval of those that the test does not
// reject.
type shift struct{ center, lo, hi float64 }

// clipAtZero removes the part of the interval beyond 0: a test that rejects no
// difference rejects those beyond it, too. Only ties, which the interval does
// not account for, leave such a part.
func (s *shift) clipAtZero() {
	switch {
	case s.center > 0:
		s.lo = max(s.lo, 0)
	case s.center < 0:
		s.hi = min(s.hi, 0)
	}
}

// around is the difference between two medians, with the interval of the shift.
// The medians are the numbers shown next to it, so a reader who divides them
// gets the same. Where the medians are further apart than the interval, it is
// extended to them; if they then differ in the other direction than the test
// says, 0 is inside it, and the verdict is left out.
func (s shift) around(base, candidate float64, relative bool) Difference {
	d := Difference{Relative: relative, Center: candidate - base}
	back := func(v float64) float64 { return v }
	if relative {
		d.Center, back = candidate/base-1, math.Expm1
	}
	d.Lo, d.Hi = min(back(s.lo), d.Center), max(back(s.hi), d.Center)
	return d
}

// pairShift is the Hodges-Lehmann estimate of the shift between two samples,
// the median of all differences of pairs, and its interval: the shifts that the
// U-test does not reject. It is infinite if the samples are too small for one.
func pairShift(base, candidate []float64, logarithms bool, confidence float64) shift {
	x, y := thin(base, logarithms), thin(candidate, logarithms)
	pairs := make([]float64, 0, len(x)*len(y))
	for _, a := range x {
		for _, b := range y {
			pairs = append(pairs, b-a)
		}
	}
	slices.Sort(pairs)
	s := shift{center: (pairs[(len(pairs)-1)/2] + pairs[len(pairs)/2]) / 2, lo: math.Inf(-1), hi: math.Inf(1)}
	n, m := len(base), len(candidate)
	if out := rejected(n, m, 1-confidence); out > 0 { // pairs beyond the interval, on either side
		k := min((out-1)*len(pairs)/(n*m), (len(pairs)-1)/2) // the same share of thinned samples
		s.lo, s.hi = pairs[k], pairs[len(pairs)-1-k]
	}
	return s
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
