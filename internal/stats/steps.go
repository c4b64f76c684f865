package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Step is a lasting change of level in a series.
type Step struct {
	At            int     // the first value of the new level
	Before, After float64 // medians of the stretches on either side
	Change        float64 // After over Before less 1; of a series with values that are not positive, After less Before
	P             float64 // share of shuffled series with as clear a step, at the time it was found
}

// StepOptions say when a step is one. The zero value is StepDefaults.
type StepOptions struct {
	Alpha  float64 // share of series without a step in which any may be found
	Effect float64 // steps that change less are none
	Least  int     // values on either side of a step
}

// StepDefaults are the options unless others are asked for. Three values make
// a level: two strange runs are no step.
var StepDefaults = StepOptions{Alpha: 0.05, Effect: 0.03, Least: 3}

// shuffles is how many shuffled series a step is held against; the least
// probability that can come of it is one in a thousand.
const shuffles = 999

// Steps finds the changes of level in a series in the order of time, such as
// the medians of revisions, by E-divisive means: the split of the series whose
// sides differ most in the energy distance is a step if shuffled series seldom
// have one as clear; then both sides are searched in turn (Matteson and James,
// A Nonparametric Approach for Multiple Change Point Analysis of Multivariate
// Data, 2014; used on benchmarks by Daly and others, The Use of Change Point
// Detection to Identify Software Performance Regressions, 2020, and in Apache
// Otava by Fleming and others, Hunter, 2023). Where Otava replaced the shuffles
// by a t-test for its speed, whose probability is too small because the split
// was sought, the shuffles are kept here, cheap by running sums over ranks, and
// seeded: the same series has the same steps, always.
//
// It assumes that values of one level do not depend on their neighbours. A
// slow drift is found as a staircase.
func Steps(series []float64, o StepOptions) []Step {
	if o == (StepOptions{}) {
		o = StepDefaults
	}
	o.Least = max(1, o.Least)
	positive := len(series) > 0 && slices.Min(series) > 0
	x := slices.Clone(series)
	if positive {
		for i, v := range x {
			x[i] = math.Log(v)
		}
	}
	s := &searcher{x: x, o: o, rnd: rand.New(rand.NewPCG(0xca220, uint64(len(x))))}
	s.search(0, len(x))
	slices.SortFunc(s.found, func(a, b Step) int { return a.At - b.At })
	s.settle()
	out := s.found[:0]
	for i, f := range s.found {
		lo, hi := 0, len(x)
		if n := len(out); n > 0 {
			lo = out[n-1].At
		}
		if i+1 < len(s.found) {
			hi = s.found[i+1].At
		}
		f.Before, f.After = median(series[lo:f.At]), median(series[f.At:hi])
		f.Change = f.After - f.Before
		d := Difference{Center: f.Change, Relative: positive}
		if positive {
			f.Change = f.After/f.Before - 1
			d.Center = f.Change
		}
		if d.reaches(o.Effect) {
			out = append(out, f)
		}
	}
	// Those left out have made their neighbours' stretches longer.
	for i := range out {
		lo, hi := 0, len(x)
		if i > 0 {
			lo = out[i-1].At
		}
		if i+1 < len(out) {
			hi = out[i+1].At
		}
		out[i].Before, out[i].After = median(series[lo:out[i].At]), median(series[out[i].At:hi])
		out[i].Change = out[i].After - out[i].Before
		if positive {
			out[i].Change = out[i].After/out[i].Before - 1
		}
	}
	return slices.Clip(out)
}

// searcher holds one search.
type searcher struct {
	x     []float64
	o     StepOptions
	rnd   *rand.Rand
	found []Step
}

// search finds the steps between two places.
func (s *searcher) search(lo, hi int) {
	if hi-lo < 2*s.o.Least {
		return
	}
	e := newEnergy(s.x[lo:hi], s.o.Least)
	at, q := e.split(e.rank)
	p := e.shuffled(q, s.o.Alpha, s.rnd)
	if p > s.o.Alpha {
		return
	}
	s.found = append(s.found, Step{At: lo + at, P: p})
	s.search(lo, lo+at)
	s.search(lo+at, hi)
}

// settle places each step anew between its neighbours: the first were placed
// while the others still blurred them.
func (s *searcher) settle() {
	for i := range s.found {
		lo, hi := 0, len(s.x)
		if i > 0 {
			lo = s.found[i-1].At
		}
		if i+1 < len(s.found) {
			hi = s.found[i+1].At
		}
		if hi-lo >= 2*s.o.Least {
			e := newEnergy(s.x[lo:hi], s.o.Least)
			at, _ := e.split(e.rank)
			s.found[i].At = lo + at
		}
	}
}

// energy finds the split of a series whose sides are furthest apart in the
// energy distance. Distances are sums over ranks, so that a series of n values
// costs n log n and not n squared.
type energy struct {
	least  int
	sorted []float64
	rank   []int     // of the values in their order
	total  []float64 // distance of each rank to all values
	all    float64   // sum of the distances of all pairs
	count  []int     // Fenwick trees over ranks of those on the left
	sum    []float64
}

func newEnergy(x []float64, least int) *energy {
	n := len(x)
	e := &energy{
		least: least, sorted: make([]float64, n), rank: make([]int, n), total: make([]float64, n),
		count: make([]int, n+1), sum: make([]float64, n+1),
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case x[a] < x[b]:
			return -1
		case x[a] > x[b]:
			return 1
		}
		return 0
	})
	whole := 0.0
	// From their mean, so that sums of large numbers do not eat small differences.
	for _, v := range x {
		whole += v / float64(n)
	}
	sum := 0.0
	for r, i := range order {
		e.rank[i] = r
		e.sorted[r] = x[i] - whole
		sum += e.sorted[r]
	}
	below := 0.0
	for r, v := range e.sorted {
		above := sum - below - v
		e.total[r] = v*float64(r) - below + above - v*float64(n-1-r)
		below += v
		e.all += e.total[r] / 2
	}
	return e
}

// split returns the best split of the values with these ranks in this order,
// and how far apart its sides are: m n / (m + n) times the energy distance.
func (e *energy) split(ranks []int) (at int, q float64) {
	clear(e.count)
	clear(e.sum)
	n := len(ranks)
	at, q = e.least, math.Inf(-1)
	var left, leftSum, toAll float64 // pairs on the left, sum of the left, distances from the left to all
	for m, r := range ranks[:n-e.least] {
		v := e.sorted[r]
		below, belowSum := e.below(r)
		left += v*float64(below) - belowSum + (leftSum - belowSum) - v*float64(m-below)
		leftSum += v
		toAll += e.total[r]
		e.add(r, v)
		if m+1 < e.least {
			continue
		}
		// Every distance from the left to all is to the right or, twice, within.
		nl, nr := float64(m+1), float64(n-m-1)
		across := toAll - 2*left
		right := e.all - left - across
		d := 2 * across / (nl * nr)
		if nl > 1 {
			d -= 2 * left / (nl * (nl - 1))
		}
		if nr > 1 {
			d -= 2 * right / (nr * (nr - 1))
		}
		if v := d * nl * nr / (nl + nr); v > q {
			at, q = m+1, v
		}
	}
	return at, q
}

// shuffled is the share of shuffled series that have as clear a split. It stops
// as soon as the share must be above alpha, and then returns one that is.
func (e *energy) shuffled(q, alpha float64, rnd *rand.Rand) float64 {
	ranks := slices.Clone(e.rank)
	as := 1 // the series itself is one of them
	for i := range shuffles {
		rnd.Shuffle(len(ranks), func(a, b int) { ranks[a], ranks[b] = ranks[b], ranks[a] })
		if _, v := e.split(ranks); v >= q-1e-12*math.Abs(q) {
			if as++; float64(as) > alpha*(shuffles+1) {
				return float64(as) / float64(i+2)
			}
		}
	}
	return float64(as) / (shuffles + 1)
}

// below returns how many values on the left rank lower, and their sum.
func (e *energy) below(r int) (n int, sum float64) {
	for ; r > 0; r &= r - 1 {
		n += e.count[r]
		sum += e.sum[r]
	}
	return n, sum
}

// add puts a value on the left.
func (e *energy) add(r int, v float64) {
	for r++; r < len(e.count); r += r & -r {
		e.count[r]++
		e.sum[r] += v
	}
}

// median of values.
func median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	s := slices.Clone(x)
	slices.Sort(s)
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
