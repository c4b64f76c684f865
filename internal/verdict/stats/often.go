package stats

import "math"

// MoreOften is the probability of at least this many hits among the candidate's
// trials if the candidate's rate equals the base's: Fisher's exact test,
// one-sided. base and candidate are the hits of each side. It is 1 if a side
// has no trials.
func MoreOften(base, baseTrials, candidate, candidateTrials int) float64 {
	if baseTrials <= 0 || candidateTrials <= 0 {
		return 1
	}
	all, hits := baseTrials+candidateTrials, base+candidate
	ways := func(n, k int) float64 { // the logarithm of n over k
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		return a - b - c
	}
	p := 0.0
	for k := candidate; k <= min(hits, candidateTrials); k++ {
		if hits-k > baseTrials {
			continue
		}
		p += math.Exp(ways(candidateTrials, k) + ways(baseTrials, hits-k) - ways(all, hits))
	}
	return min(1, p)
}
