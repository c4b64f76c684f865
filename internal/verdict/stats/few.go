package stats

import (
	"math"

	moremath "github.com/aclements/go-moremath/stats"
)

// Few is the smallest number of repetitions per side with which a clear
// difference is decided.
const Few = 3

// ClearRatio is the smallest ratio of the medians that is clear: with fewer
// than Least repetitions, smaller differences are not decided.
const ClearRatio = 1.25

// ClearApart is the same for samples that were not measured in turns: what another program does for a few
// minutes may be all of a few runs.
const ClearApart = 2

// welch compares two small samples by Welch's t-test, of logarithms if the
// difference is relative. It takes the degrees of freedom of the smaller sample
// alone, fewer than Welch's formula gives. With these the test keeps its level
// also for noise with heavy tails, for noise of a few discrete values, and for
// samples of very different sizes (TestFewErrorRates).
//
// The U-test cannot be used here: three and three values never reach 0.05, and
// four and four reach it alone, but not among several rows.
// away is how far the difference may be from 0 without a cause.
func welch(base, candidate []float64, relative bool, away, confidence float64) (s shift, p float64) {
	n, m := float64(len(base)), float64(len(candidate))
	center, square := meanAndError(base, relative)
	mean, other := meanAndError(candidate, relative)
	s.center = mean - center
	scatter := math.Sqrt(square + other)
	if scatter == 0 { // the values of each side are equal
		s.lo, s.hi = s.center, s.center
		if math.Abs(s.center) <= math.Abs(away) {
			return s, 1
		}
		return s, 0
	}
	t := moremath.TDist{V: min(n, m) - 1}
	reach := scatter * moremath.InvCDF(t)((1+confidence)/2)
	s.lo, s.hi = s.center-reach, s.center+reach
	return s, 2 * (1 - t.CDF(math.Abs(s.center-away)/scatter))
}

// meanAndError is the mean of a sample and its squared standard error.
func meanAndError(sample []float64, logarithms bool) (mean, square float64) {
	n := float64(len(sample))
	scale := func(v float64) float64 { return v }
	if logarithms {
		scale = math.Log
	}
	for _, v := range sample {
		mean += scale(v) / n
	}
	for _, v := range sample {
		square += (scale(v) - mean) * (scale(v) - mean) / (n - 1) / n
	}
	return mean, square
}

// clear is whether the medians differ enough for few repetitions.
func (c *Comparison) clear() bool {
	less, more := math.Abs(c.Base.Median), math.Abs(c.Candidate.Median)
	return max(less, more) >= c.clearRatio()*min(less, more)
}

func (c *Comparison) clearRatio() float64 {
	if c.apart {
		return ClearApart
	}
	return ClearRatio
}
