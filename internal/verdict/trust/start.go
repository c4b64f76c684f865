package trust

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// The bounds of Start.
const (
	leastStart      = 10   // intervals in the measurement
	startRatio      = 1.5  // between the start and the rest
	startDeviations = 3.5  // of the rest, from its median
	startChance     = 0.01 // that intervals of the rest begin a run in this order
	leastForMedian  = 20   // events in a usual interval
	leastForP99     = 200
	// How many intervals a run must have for a start of one interval. If each of n
	// intervals differs from the others with the same probability, only the first one
	// does in at most 1/(e n) of all runs: for 18, in 2 %. Single intervals with a high
	// 99th percentile are common, so it needs more intervals.
	leastForOne    = 18
	leastForOneP99 = 40
)

// Start warns if the first intervals of the measurement differ from the rest, and says
// which warm-up covers them; otherwise it returns "". An interval differs if its median
// time, its 99th percentile or its throughput is worse by half, and further from the
// rest's median than 3.5 of its deviations (the median absolute one, scaled to a normal
// distribution). The rest are the last two thirds of the measurement, so a start is at
// most a third of it.
//
// Intervals like those at the start may also occur later. The warning is left out if such
// intervals are so frequent that more than 1 % of all runs would begin with as many by
// chance, if the load itself changed, or after an outage, which has its own sentence.
func Start(r *load.Result) string {
	if r.Mode == load.Consuming || len(r.Steps) > 1 || r.Steady.Outage != "" {
		return ""
	}
	m := &r.Measurement
	in := rows(r.Intervals, m.Start, m.End)
	if len(in) < leastStart || r.Mode == load.OpenLoop && changes(in) {
		return ""
	}
	name, of := "response", func(iv *measure.Interval) *measure.Histogram { return iv.Response }
	if m.Response.Count() == 0 {
		name, of = "service", func(iv *measure.Interval) *measure.Histogram { return iv.Service }
	}
	usual := usualCount(in, of)
	var k int
	var found []string
	percentile := func(p float64, least uint64, leastForOne int) {
		if usual < least {
			return
		}
		values := make([]float64, len(in))
		for i := range in {
			values[i] = float64(of(&in[i]).Percentile(p)) // 0 if nothing was answered
		}
		if n := unlike(values, leastForOne); n > 0 {
			k = max(k, n)
			found = append(found, fmt.Sprintf("%s p%.0f %s, %s after it", name, p,
				units.FormatDuration(joined(in[:n], of).Percentile(p)), units.FormatDuration(joined(in[n:], of).Percentile(p))))
		}
	}
	percentile(50, leastForMedian, leastForOne)
	percentile(99, leastForP99, leastForOneP99)
	if r.Mode != load.OpenLoop {
		rates, each := make([]float64, len(in)), make([]float64, len(in))
		for i := range in {
			rates[i] = float64(in[i].Acked) / in[i].Length().Seconds()
			each[i] = 1 / max(rates[i], 1e-3)
		}
		if n := unlike(each, leastForOne); n > 0 {
			k = max(k, n)
			found = append(found, fmt.Sprintf("%s acked, %s after it", units.FormatRate(Median(rates[:n])), units.FormatRate(Median(rates[n:]))))
		}
	}
	if k == 0 {
		return ""
	}
	start := in[k-1].End - m.Start
	return fmt.Sprintf("the first %s of the measurement differ from the rest: %s; --warmup %s leaves them out",
		units.FormatDuration(start), strings.Join(found, "; "), units.FlagDuration(r.Warmup.End-r.Warmup.Start+start))
}

// changes reports whether the schedule's rate differs between intervals by more than a
// tenth and the noise of random arrivals.
func changes(in []measure.Interval) bool {
	var offered []float64
	for i := range in {
		offered = append(offered, float64(in[i].Offered)/in[i].Length().Seconds())
	}
	usual := Median(offered)
	for i, rate := range offered {
		noise := 5 * math.Sqrt(usual/in[i].Length().Seconds())
		if math.Abs(rate-usual) > MostRise*usual+noise {
			return true
		}
	}
	return false
}

// unlike returns how many values at the beginning are above the rest; 0 also if their
// number is not that of a start: one, in less than leastForOne values, or too many.
func unlike(values []float64, leastForOne int) int {
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(max(v, 1e-9))
	}
	n := len(logs)
	rest := logs[n/3:]
	usual := Median(rest)
	distances := make([]float64, len(rest))
	for i, v := range rest {
		distances[i] = math.Abs(v - usual)
	}
	bound := usual + max(math.Log(startRatio), startDeviations*1.4826*Median(distances))
	k := 0
	for k < n && logs[k] > bound {
		k++
	}
	if k == 0 || k > n/3 || k == 1 && n < leastForOne {
		return 0
	}
	later := 0
	for _, v := range logs[k:] {
		if v > bound {
			later++
		}
	}
	if later > 0 && math.Pow(float64(later+1)/float64(n-k+1), float64(k)) > startChance {
		return 0
	}
	return k
}

// Median returns the median of at least one value.
func Median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

func usualCount(in []measure.Interval, of func(*measure.Interval) *measure.Histogram) uint64 {
	var counts []float64
	for i := range in {
		counts = append(counts, float64(of(&in[i]).Count()))
	}
	return uint64(Median(counts))
}

// joined is the histogram of several intervals.
func joined(in []measure.Interval, of func(*measure.Interval) *measure.Histogram) *measure.Histogram {
	h := measure.NewHistogram()
	for i := range in {
		if times := of(&in[i]); times.Count() > 0 {
			h.Merge(times)
		}
	}
	return h
}
