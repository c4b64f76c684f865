package stats

import (
	"cmp"
	"math"
)

// Least is the smallest number of repetitions per side for every verdict. With
// fewer, only clear differences are decided (see Few). Four would suffice for
// the U-test of one row, and five for two; six also bound a median.
const Least = 6

// Options are the parameters of comparisons. The zero value is Defaults.
type Options struct {
	Alpha      float64 // largest share of pairs of equal samples, all rows together, that may be called different
	Confidence float64 // of intervals
	Effect     float64 // the smallest difference worth naming: a share of the base
	Least      int     // repetitions per side
	Few        int     // repetitions per side for a clear difference; 0: Least
}

// Defaults are the default options.
var Defaults = Options{Alpha: 0.05, Confidence: Confidence, Effect: 0.03, Least: Least, Few: Few}

// orDefaults fills in missing options. In options that are not all zero, an
// effect of 0 is a choice and stays.
func (o Options) orDefaults() Options {
	if o == (Options{}) {
		return Defaults
	}
	o.Alpha = cmp.Or(o.Alpha, Defaults.Alpha)
	o.Confidence = cmp.Or(o.Confidence, Defaults.Confidence)
	o.Least = cmp.Or(o.Least, Defaults.Least)
	return o
}

// A Row is two samples of one thing.
type Row struct {
	Base, Candidate []float64
	// History is the base as samples of levels that may differ for no reason,
	// such as revisions; Base is ignored then. With at least Levels levels, the
	// candidate is compared with the predicted next level; with fewer, all
	// their values are one sample.
	History [][]float64
	Better  Direction
	// Amount gives the difference in the unit of the values instead of as a
	// share of the base; Effect is then an amount too. It is for shares that
	// are usually 0, such as failures. If it is not set and the base has no
	// shares, see AnyChange.
	Amount bool
	Effect float64 // of this row; 0: the one in the options
	// Between is how far two groups of equal runs may be apart because they were made at different
	// times, as a share: values within a group do not show it. The test then is whether the samples
	// differ by more. 0: the runs of both sides alternated. Of an Amount it only says that they did not.
	Between float64
	// Clear: other evidence shows that the difference is clear. With fewer repetitions than Least
	// the test then decides also about differences below ClearRatio.
	Clear bool
}

// A Comparison is the result of comparing two samples.
type Comparison struct {
	Base, Candidate Estimate // of a history, Base is the median of its levels' medians
	Difference      Difference
	Predicted       bool    // compared with the predicted next level
	Few             bool    // fewer repetitions than Least: only a clear difference is decided
	P               float64 // of the test whether they differ by more than Between; NaN: not tested
	Between         float64 // in the scale of Difference
	Adjusted        float64 // P adjusted for the rows it was judged with
	Effect          float64 // the smallest difference worth naming, in the scale of Difference
	// AnyChange: the base is 0, so shares are undefined, and the test alone
	// decides; Effect is 0 then.
	AnyChange bool
	Verdict   Verdict
	Doubt     Doubt // why the verdict is Unknown

	apart bool // the sides were not measured in turns
}

// Family compares rows that are judged together: if nothing truly differs, any
// row is called better or worse in at most Alpha of families.
//
// A row is better or worse if the test, adjusted by Holm for its family, says
// that the samples differ by more than groups of equal runs may, and the
// difference is worth naming. It is the same
// if the whole interval of the difference is too small to be worth naming.
// Otherwise the verdict is that it cannot tell. The test is the U-test; with
// fewer repetitions than Least it is Welch's, and the difference must be clear.
func Family(rows []Row, o Options) []Comparison {
	o = o.orDefaults()
	out := make([]Comparison, len(rows))
	p := make([]float64, len(rows))
	for i := range rows {
		out[i] = rows[i].measure(o)
		p[i] = out[i].P
	}
	for i, v := range Holm(p) {
		out[i].Adjusted = v
		out[i].judge(&rows[i], o)
	}
	return out
}

// measure computes everything but the verdict.
func (r *Row) measure(o Options) Comparison {
	base, shown := r.Base, r.Base
	predicted := predictable(r.History)
	if r.History != nil {
		base = pooled(r.History)
		shown = base
		if predicted {
			shown = medians(r.History)
		}
	}
	c := Comparison{
		Predicted:  predicted && len(r.Candidate) > 0,
		Base:       Median(shown, o.Confidence),
		Candidate:  Median(r.Candidate, o.Confidence),
		P:          math.NaN(),
		Effect:     o.Effect,
		Difference: unknownDifference(),
		apart:      r.Between > 0,
	}
	if r.Effect != 0 {
		c.Effect = r.Effect
	}
	n, m := len(base), len(r.Candidate)
	relative := !r.Amount && positive(base) && positive(r.Candidate)
	if !r.Amount && n > 0 && m > 0 {
		c.AnyChange = !relative && c.Base.Median == 0
		c.Effect = smallestEffect(c.Effect, c.Base.Median, relative)
		c.Between = smallestEffect(r.Between, c.Base.Median, relative)
	}
	away := c.away(relative)
	if c.Predicted {
		c.Difference, c.P = predict(r.History, r.Candidate, relative, away, o.Confidence)
	} else if n > 0 && m > 0 {
		s := pairShift(base, r.Candidate, relative, o.Confidence)
		switch least := min(n, m); {
		case least >= o.Least:
			if uTest(base, r.Candidate) <= 1-o.Confidence {
				s.clipAtZero()
			}
			c.P = uTest(moved(base, away, relative), r.Candidate)
		case o.Few > 1 && least >= o.Few:
			c.Few = true
			s, c.P = welch(base, r.Candidate, relative, away, o.Confidence)
		}
		c.Difference = s.around(c.Base.Median, c.Candidate.Median, relative)
		if c.withinBetween() && !math.IsNaN(c.P) {
			c.P = 1 // the base was moved beyond the candidate
		}
	}
	return c
}

// away is how far the base is moved towards the candidate, so that the test is whether they differ by
// more than Between: an amount, or a logarithm.
func (c *Comparison) away(relative bool) float64 {
	by := c.Between
	if relative {
		by = math.Log1p(by)
	}
	if c.Candidate.Median < c.Base.Median {
		return -by
	}
	return by
}

// withinBetween is whether the medians are no further apart than groups of equal runs may be.
func (c *Comparison) withinBetween() bool { return c.Between > 0 && !c.Difference.reaches(c.Between) }

// moved is a sample moved by an amount or, if relative, by a logarithm.
func moved(sample []float64, by float64, relative bool) []float64 {
	if by == 0 {
		return sample
	}
	out := make([]float64, len(sample))
	for i, v := range sample {
		if out[i] = v + by; relative {
			out[i] = v * math.Exp(by)
		}
	}
	return out
}

// judge gives the verdict.
func (c *Comparison) judge(r *Row, o Options) {
	d := &c.Difference
	switch {
	case c.Base.N == 0 || c.Candidate.N == 0:
		c.doubt(Missing, 0)
	case math.IsNaN(c.P):
		c.doubt(TooFew, o.Least)
		if c.Doubt.Few = o.Few; c.apart && o.Few > 0 {
			c.Doubt.Clear = ClearApart
		}
	case c.Few && !r.Clear && !c.clear():
		c.doubt(TooFew, o.Least)
	case c.Adjusted <= o.Alpha && d.reaches(c.Effect) && d.Center != 0 && !d.straddles():
		c.Verdict = Worse
		if (d.Center > 0) == (r.Better == More) {
			c.Verdict = Better
		}
	case c.Few:
		c.doubt(TooFew, o.Least)
	case d.within(c.Effect):
		c.Verdict = Same
	case c.Between > 0 && c.Adjusted > o.Alpha && d.Bounded() && !d.straddles() && d.Center != 0:
		c.doubt(Apart, 0)
		if d.Relative {
			c.Doubt.Between = c.Between
		}
	case c.Adjusted <= o.Alpha:
		c.doubt(Small, c.need())
	case c.P <= o.Alpha:
		c.doubt(Crowded, c.need())
	default:
		c.doubt(Noisy, c.need())
	}
}

// doubt sets the verdict Unknown and its reason.
func (c *Comparison) doubt(r Reason, need int) {
	c.Verdict, c.Doubt = Unknown, Doubt{Reason: r, Need: need}
	if c.Difference.Bounded() {
		c.Doubt.Detects = c.halfWidth()
	}
}

// halfWidth is how far the interval extends from its center, in the scale in
// which it is symmetric.
func (c *Comparison) halfWidth() float64 {
	d := &c.Difference
	if d.Relative {
		return math.Expm1((math.Log1p(d.Hi) - math.Log1p(d.Lo)) / 2)
	}
	return (d.Hi - d.Lo) / 2
}

// need estimates how many repetitions per side would suffice: an interval
// narrows with the square root of their number, and must exclude either no
// difference or a difference worth naming.
func (c *Comparison) need() int {
	d := &c.Difference
	if !d.Bounded() {
		return 0
	}
	half, center, effect := c.halfWidth(), math.Abs(d.Center), max(c.Effect, c.Between)
	room := effect - center
	if center >= effect {
		room = center - c.Between
	}
	if c.Predicted {
		return 0 // repetitions do not reduce how much levels differ for no reason
	}
	n := float64(min(c.Base.N, c.Candidate.N))
	if room <= 0 || half <= 0 {
		return Many
	}
	return int(min(Many, max(n+1, math.Ceil(n*(half/room)*(half/room)))))
}

// Best is the sample with the best median, and whether it is better than every
// other, all comparisons judged together. Samples with fewer values than Least
// are never. between is Row.Between of two samples; nil: 0.
func Best(samples [][]float64, better Direction, between func(a, b int) float64, o Options) (best int, sure bool) {
	o = o.orDefaults()
	o.Few = 0
	best = -1
	for i, s := range samples {
		if len(s) == 0 {
			continue
		}
		if best < 0 || (Median(s, Confidence).Median-Median(samples[best], Confidence).Median)*float64(better) > 0 {
			best = i
		}
	}
	if best < 0 || len(samples) < 2 {
		return best, false
	}
	var rows []Row
	for i, s := range samples {
		if i != best {
			r := Row{Base: s, Candidate: samples[best], Better: better}
			if between != nil {
				r.Between = between(i, best)
			}
			rows = append(rows, r)
		}
	}
	for _, c := range Family(rows, o) {
		if c.Verdict != Better {
			return best, false
		}
	}
	return best, true
}
