package stats

import (
	"math"
	"slices"
	"sort"
	"sync"

	moremath "github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"
)

// uTest is the probability of samples at least as far apart as these two if
// both were drawn from the same: the two-sided U-test, exact where the samples
// are small. Samples of one and the same value are not apart.
func uTest(base, candidate []float64) float64 {
	x := benchmath.NewSample(slices.Clone(base), &benchmath.DefaultThresholds)
	y := benchmath.NewSample(slices.Clone(candidate), &benchmath.DefaultThresholds)
	return benchmath.AssumeNothing.Compare(x, y).P
}

// exact is how many values a side are counted out, by benchmath and so here;
// more meet the normal distribution, with its correction for whole numbers.
const exact = 50

// rejects keeps what rejected found: the same few sizes are asked for again
// and again.
var rejects sync.Map

type rejectKey struct {
	n, m  int
	alpha float64
}

// rejected is the number of values of U that the two-sided test at this level
// rejects at either end; 0: it rejects nothing, the samples are too small.
// The interval of the shift ends at that difference of pairs, counted from
// either end (Lehmann, Nonparametrics, 1975, section 2.5).
func rejected(n, m int, alpha float64) int {
	key := rejectKey{n, m, alpha}
	if v, ok := rejects.Load(key); ok {
		return v.(int)
	}
	var c int
	if n <= exact && m <= exact {
		u := moremath.UDist{N1: n, N2: m}
		c = sort.Search(n*m/2, func(c int) bool { return 2*u.CDF(float64(c)) > alpha })
	} else {
		nm := float64(n) * float64(m)
		z := moremath.StdNormal.InvCDF(1 - alpha/2)
		c = max(0, int(nm/2-z*math.Sqrt(nm*float64(n+m+1)/12)+0.5))
	}
	rejects.Store(key, c)
	return c
}

// Holm adjusts the probabilities of tests that are judged together: at most
// alpha of such families have any that falls to alpha without cause, whatever
// depends on what (Holm 1979). NaNs are no tests and stay what they are.
func Holm(p []float64) []float64 {
	order := make([]int, 0, len(p))
	for i, v := range p {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case p[a] < p[b]:
			return -1
		case p[a] > p[b]:
			return 1
		}
		return 0
	})
	out := slices.Clone(p)
	least := 0.0
	for rank, i := range order {
		least = max(least, min(1, p[i]*float64(len(order)-rank)))
		out[i] = least
	}
	return out
}
