package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Step is a lasting change of level in a series.
type Step struct {
	At            int     // the first value of the new level
	Before, After float64 // medians of the segments on either side
	Change        float64 // a share of Before if Relative, else After minus Before: see Change
	Relative      bool
	P             float64 // share of shuffled series with as clear a step, at the time it was found
}

// StepOptions say what counts as a step. The zero value is StepDefaults.
type StepOptions struct {
	Alpha  float64 // share of series without a step in which any may be found
	Effect float64 // smaller steps do not count: a share of the level before; from a level of 0 any change counts
	Least  int     // values on either side of a step
}

// StepDefaults are the default options. Three values make a level: two odd runs
// are not a step.
var StepDefaults = StepOptions{Alpha: 0.05, Effect: 0.03, Least: 3}

// shuffles is how many shuffled series a step is compared with: the smallest
// possible probability is 1 in 400.
const shuffles = 399

// Steps finds the changes of level in a series in the order of time, such as
// the medians of revisions, by E-divisive means: the split of the series whose
// sides differ most in the energy distance is a step if shuffled series rarely
// have one as clear; then both sides are searched the same way (Matteson and
// James, A Nonparametric Approach for Multiple Change Point Analysis of
// Multivariate Data, 2014; used on benchmarks by Daly and others, The Use of
// Change Point Detection to Identify Software Performance Regressions, 2020,
// and in Apache Otava by Fleming and others, Hunter, 2023). Otava replaced the
// shuffles by a faster t-test, whose probability is too small because the split
// was searched for. The shuffles are kept here, and seeded: the same series
// always has the same steps. A series of n values costs n squared for each of
// up to 400 shuffles: for 200 values without a step some 5 ms, with one some
// 60.
//
// It assumes that values of one level do not depend on their neighbours. A slow
// drift is found as a staircase.
func Steps(series []float64, o StepOptions) []Step {
	if o == (StepOptions{}) {
		o = StepDefaults
	}
	o.Least = max(1, o.Least)
	x := slices.Clone(series)
	if positive(series) {
		for i, v := range x {
			x[i] = math.Log(v)
		}
	}
	s := &searcher{x: x, o: o, rnd: rand.New(rand.NewPCG(0xca220, uint64(len(x))))}
	s.search(0, len(x))
	slices.SortFunc(s.found, func(a, b Step) int { return a.At - b.At })
	s.adjust()
	out := s.found[:0]
	for i, f := range s.found {
		lo, hi := 0, len(x)
		if n := len(out); n > 0 {
			lo = out[n-1].At
		}
		if i+1 < len(s.found) {
			hi = s.found[i+1].At
		}
		d := f.measure(series, lo, hi)
		if d.Center != 0 && d.reaches(smallestEffect(o.Effect, f.Before, d.Relative)) {
			out = append(out, f)
		}
	}
	// Without the steps left out, their neighbours' segments are longer.
	for i := range out {
		lo, hi := 0, len(x)
		if i > 0 {
			lo = out[i-1].At
		}
		if i+1 < len(out) {
			hi = out[i+1].At
		}
		out[i].measure(series, lo, hi)
	}
	return slices.Clip(out)
}

// measure computes the levels before and after a step, in the segments that end
// at its neighbours.
func (f *Step) measure(series []float64, lo, hi int) Difference {
	f.Before, f.After = median(series[lo:f.At]), median(series[f.At:hi])
	d := Change(f.Before, f.After)
	f.Change, f.Relative = d.Center, d.Relative
	return d
}

// A searcher is one search.
type searcher struct {
	x     []float64
	o     StepOptions
	rnd   *rand.Rand
	found []Step
}

// search finds the steps between lo and hi.
func (s *searcher) search(lo, hi int) {
	if hi-lo < 2*s.o.Least {
		return
	}
	x := s.x[lo:hi]
	e := newEnergy(len(x), s.o.Least)
	at, q := e.split(x)
	p := e.shuffled(x, q, s.o.Alpha, s.rnd)
	if p > s.o.Alpha {
		return
	}
	s.found = append(s.found, Step{At: lo + at, P: p})
	s.search(lo, lo+at)
	s.search(lo+at, hi)
}

// adjust places each step again between its neighbours: the first ones were
// placed before the others were known.
func (s *searcher) adjust() {
	for i := range s.found {
		lo, hi := 0, len(s.x)
		if i > 0 {
			lo = s.found[i-1].At
		}
		if i+1 < len(s.found) {
			hi = s.found[i+1].At
		}
		if hi-lo >= 2*s.o.Least {
			e := newEnergy(hi-lo, s.o.Least)
			e.cuts, e.across = e.cuts[len(e.cuts)-1:], e.across[:1] // its neighbour is the end
			at, _ := e.split(s.x[lo:hi])
			s.found[i].At = lo + at
		}
	}
}

// maxEnds is how many ends of the segment after a split are tried. With only
// the last one, a dip that recovered would be hidden in the segment around it.
const maxEnds = 8

// energy finds the split of a series whose sides are furthest apart in the
// energy distance, where the side after the split may end before the series
// does. It is reused for series of one length and does not allocate.
type energy struct {
	least  int
	cuts   []int       // ends that are tried, in ascending order; the last is the end of the series
	within []float64   // distances of all pairs before each position
	across [][]float64 // by end: distances across a split, by its position
}

func newEnergy(n, least int) *energy {
	e := &energy{least: least, within: make([]float64, n+1)}
	for end := n; end >= 2*least; end -= max(1, n/maxEnds) {
		e.cuts = append(e.cuts, end)
		e.across = append(e.across, make([]float64, n+1))
	}
	slices.Reverse(e.cuts)
	return e
}

// split returns the best split of a series, and how far apart its sides are: m
// n / (m + n) times the energy distance.
func (e *energy) split(x []float64) (at int, q float64) {
	for i, v := range x {
		left := distance(v, x[:i])
		e.within[i+1] = e.within[i] + left
		// Pairs with values on the left are no longer across, pairs with values
		// on the right now are.
		from, right := i+1, 0.0
		for k, end := range e.cuts {
			if end > i {
				right += distance(v, x[from:end])
				e.across[k][i+1] = e.across[k][i] - left + right
				from = end
			}
		}
	}
	at, q = e.least, math.Inf(-1)
	for k := len(e.cuts) - 1; k >= 0; k-- { // of equal ones the longest
		end := e.cuts[k]
		for m := e.least; m <= end-e.least; m++ {
			nl, nr := float64(m), float64(end-m)
			across, left := e.across[k][m], e.within[m]
			right := e.within[end] - left - across
			d := 2 * across / (nl * nr)
			if nl > 1 {
				d -= 2 * left / (nl * (nl - 1))
			}
			if nr > 1 {
				d -= 2 * right / (nr * (nr - 1))
			}
			if v := d * nl * nr / (nl + nr); v > q {
				at, q = m, v
			}
		}
	}
	return at, q
}

// distance is the sum of distances from v to others. It uses four sums because
// each addition waits for the previous one.
func distance(v float64, others []float64) float64 {
	var a, b, c, d float64
	for ; len(others) >= 4; others = others[4:] {
		a += math.Abs(v - others[0])
		b += math.Abs(v - others[1])
		c += math.Abs(v - others[2])
		d += math.Abs(v - others[3])
	}
	for _, w := range others {
		a += math.Abs(v - w)
	}
	return a + b + c + d
}

// shuffled is the share of shuffled series that have as clear a split. It stops
// as soon as the share must be above alpha, and then returns one that is.
func (e *energy) shuffled(x []float64, q, alpha float64, rnd *rand.Rand) float64 {
	x = slices.Clone(x)
	asClear := 1 // the series itself
	for i := range shuffles {
		rnd.Shuffle(len(x), func(a, b int) { x[a], x[b] = x[b], x[a] })
		if _, v := e.split(x); v >= q-1e-9*math.Abs(q) {
			if asClear++; float64(asClear) > alpha*(shuffles+1) {
				return float64(asClear) / float64(i+2)
			}
		}
	}
	return float64(asClear) / (shuffles + 1)
}

// median is NaN for no values.
func median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	s := slices.Clone(x)
	slices.Sort(s)
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
