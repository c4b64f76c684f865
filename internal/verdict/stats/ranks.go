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
// both were drawn from the same population: the two-sided U-test, exact for
// small samples. For samples in which all values are equal it is 1.
func uTest(base, candidate []float64) float64 {
	x := benchmath.NewSample(slices.Clone(base), &benchmath.DefaultThresholds)
	y := benchmath.NewSample(slices.Clone(candidate), &benchmath.DefaultThresholds)
	return benchmath.AssumeNothing.Compare(x, y).P
}

// exactLimit is the largest sample size for which benchmath, and so this
// package, computes the distribution of U exactly; for larger ones the normal
// distribution is used, with the continuity correction.
const exactLimit = 50

// rejects caches the results of rejected: the same few sizes recur.
var rejects sync.Map

type rejectKey struct {
	n, m  int
	alpha float64
}

// rejected is the number of values of U that the two-sided test at this level
// rejects at either end; 0 if the samples are too small to reject anything. The
// interval of the shift ends at that difference of pairs, counted from either
// end (Lehmann, Nonparametrics, 1975, section 2.5).
func rejected(n, m int, alpha float64) int {
	key := rejectKey{n, m, alpha}
	if v, ok := rejects.Load(key); ok {
		return v.(int)
	}
	var c int
	if n <= exactLimit && m <= exactLimit {
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
// alpha of such families have a false positive, whatever the dependence between
// the tests (Holm 1979). NaN marks a missing test and stays NaN.
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
