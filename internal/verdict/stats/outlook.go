package stats

import (
	"math"
	"slices"

	moremath "github.com/aclements/go-moremath/stats"
)

// Levels is the smallest number of levels in a history that shows how much they
// differ for no reason.
const Levels = 6

// predict compares a new sample with the predicted next level of a history: the
// levels (the median of each one's repetitions) scatter about their median, and
// a new one scatters equally, however its own repetitions scatter. The
// difference is that of the two medians that are shown next to it. The
// prediction is Student's, which assumes that levels, in logarithms if they are
// positive, are normal. An outlier among them, or among the repetitions of one,
// makes the interval wide but not wrong: it would shift a mean, but hardly
// shifts the median. A new level with fewer repetitions than those before it
// scatters more, by the variance of repetitions.
//
// A U-test of all repetitions before against all new ones would treat those of
// one level as independent, and call every level new.
//
// away is how far the new level may be from the others because it was measured at another time, if that
// is not part of how they scatter.
func predict(history [][]float64, candidate []float64, relative bool, away, confidence float64) (d Difference, p float64) {
	scale := func(v float64) float64 { return v }
	back := scale
	if relative {
		scale, back = math.Log, math.Expm1
	}
	var levels []float64 // in their own scale
	var squares, freedom, repetitions float64
	level := func(sample []float64) float64 {
		mean := 0.0
		for _, v := range sample {
			mean += scale(v) / float64(len(sample))
		}
		for _, v := range sample {
			squares += (scale(v) - mean) * (scale(v) - mean)
		}
		freedom += float64(len(sample) - 1)
		return median(sample)
	}
	for _, h := range history {
		if len(h) > 0 {
			levels = append(levels, level(h))
			repetitions += medianVariance(len(h))
		}
	}
	k := float64(len(levels))
	center := scale(median(levels))
	between := 0.0
	for _, v := range levels {
		between += (scale(v) - center) * (scale(v) - center) / (k - 1)
	}
	shift := scale(level(candidate)) - center
	within := 0.0
	if freedom > 0 {
		within = squares / freedom
	}
	scatter := math.Sqrt(between*(1+1/k) + within*max(0, medianVariance(len(candidate))-repetitions/k))
	t := moremath.TDist{V: k - 1}
	d = Difference{Relative: relative, Center: back(shift), Lo: back(shift), Hi: back(shift)}
	if scatter == 0 { // every level was the same, to the bit
		if math.Abs(shift) <= math.Abs(away) {
			return d, 1
		}
		return d, 0
	}
	reach := scatter * moremath.InvCDF(t)((1+confidence)/2)
	d.Lo, d.Hi = back(shift-reach), back(shift+reach)
	if math.Abs(shift) <= math.Abs(away) && away != 0 {
		return d, 1
	}
	return d, 2 * (1 - t.CDF(math.Abs(shift-away)/scatter))
}

// What groups of equal runs show of how far groups are apart.
const (
	leastGroups = 4 // fewer show too little
	// reach times the median difference of two groups is what 95 % of such differences are below, if
	// groups scatter normally: 1.96 / 0.674.
	reach = 2.9
)

// Between is how far two groups of equal runs may be apart, as a share, by the medians of earlier groups
// in the order of time: reach times the median of the differences of two that follow each other. A few of
// them may be real changes, and slow drift over many groups does not count. It is false if there are too
// few groups, or if not all values are above 0.
func Between(groups [][]float64) (share float64, ok bool) {
	var apart []float64
	last := 0.0
	for _, g := range groups {
		if len(g) == 0 {
			continue
		}
		if !positive(g) {
			return 0, false
		}
		now := math.Log(median(g))
		apart, last = append(apart, math.Abs(now-last)), now
	}
	if len(apart) < leastGroups {
		return 0, false
	}
	return math.Expm1(reach * median(apart[1:])), true // the first has none before it
}

// medianVariance is the variance of the median of n values, as a share of the
// variance of one: 1/n, like a mean's, and larger by the factor pi/2 from three
// values on.
func medianVariance(n int) float64 {
	if n <= 2 {
		return 1 / float64(n)
	}
	return math.Pi / 2 / float64(n)
}

// predictable is whether a history has enough levels for a prediction.
func predictable(history [][]float64) bool {
	n := 0
	for _, h := range history {
		if len(h) > 0 {
			n++
		}
	}
	return n >= Levels
}

// medians are the medians of the levels of a history.
func medians(history [][]float64) []float64 {
	var out []float64
	for _, h := range history {
		if len(h) > 0 {
			out = append(out, median(h))
		}
	}
	return out
}

// pooled is all values of a history.
func pooled(history [][]float64) []float64 { return slices.Concat(history...) }
