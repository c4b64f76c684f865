package dropin

import (
	"time"

	"carronade/measure"
)

// Per is a rate Per second; 0 if the time is 0.
func Per(n float64, d time.Duration) float64 { return PerSecond(n, d.Seconds()) }

// PerSecond is Per for a number of seconds.
func PerSecond(n, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return n / seconds
}

// NthTime is element n, from 0, of the sorted times of a histogram, as tools find a
// percentile in an array. It is the last one for a larger n, and 0 without times.
func NthTime(h *measure.Histogram, n uint64) (at time.Duration) {
	seen := uint64(0)
	h.EachBucket(func(top time.Duration, count uint64) {
		if seen <= n {
			at = min(top, h.Max())
		}
		seen += count
	})
	return at
}
