package omb

import (
	"math"
	"time"

	"carronade/measure"
)

// percents are the percentiles of result files; 100 is the maximum.
var percents = []struct {
	name string
	p    float64
}{{"50pct", 50}, {"75pct", 75}, {"95pct", 95}, {"99pct", 99}, {"999pct", 99.9}, {"9999pct", 99.99}, {"Max", 100}}

// times are a distribution in microseconds, as the tool has it.
type times struct {
	mean      float64
	at        map[float64]float64 // percentiles, in whole microseconds
	quantiles []quantile          // of the whole distribution
}

// A quantile is a share of values, in percent, and the largest of them in microseconds.
type quantile struct{ p, us float64 }

// us is a percentile in microseconds.
func (t *times) us(p float64) float64 { return t.at[p] }

// ms is a percentile in milliseconds.
func (t *times) ms(p float64) float64 { return t.at[p] / 1e3 }

// timesOf are the times of a histogram; zero without one.
func timesOf(h *measure.Histogram) times {
	t := times{at: make(map[float64]float64, len(percents))}
	if h.Count() == 0 {
		return t
	}
	t.mean = float64(h.Mean()) / 1e3
	for _, p := range percents {
		t.at[p.p] = micros(h.Percentile(p.p))
	}
	return t
}

// micros is a time in whole microseconds.
func micros(d time.Duration) float64 { return math.Round(float64(d) / 1e3) }

// withQuantiles adds the quantiles of a histogram: one for each step, of which there are a hundred between
// a share and the share half as far from the whole, and the last one for all (HdrHistogram's percentile
// iterator with 100 ticks).
func (t *times) withQuantiles(h *measure.Histogram) {
	if h.Count() == 0 {
		return
	}
	const ticks = 100
	total, seen, next := float64(h.Count()), uint64(0), 0.0
	h.EachBucket(func(top time.Duration, n uint64) {
		seen += n
		reached := 100 * float64(seen) / total
		if reached < next {
			return
		}
		t.quantiles = append(t.quantiles, quantile{reached, micros(min(top, h.Max()))})
		for next <= reached && next < 100 {
			halvings := math.Floor(math.Log2(100/(100-next))) + 1
			next += 100 / (ticks * math.Exp2(halvings))
			if 100-next < 1e-9 {
				next = 100
			}
		}
	})
}

// quantilesOf takes the quantiles of the report, which has fewer.
func (t *times) quantilesOf(s *measure.Summary) {
	if s == nil || s.Count == 0 {
		return
	}
	t.quantiles = nil
	for _, v := range s.Percentiles {
		t.quantiles = append(t.quantiles, quantile{v.P, micros(v.D)})
	}
	t.quantiles = append(t.quantiles, quantile{100, math.Round(s.Max)})
}

// reported replaces percentiles and mean by those of the report, in which events without an answer count, too.
func (t *times) reported(s *measure.Summary) {
	if s == nil || s.Count == 0 {
		return
	}
	t.mean = s.Mean
	for _, v := range s.Percentiles {
		if _, ok := t.at[v.P]; ok && v.D > 0 {
			t.at[v.P] = micros(v.D)
		}
	}
	t.at[100] = math.Round(max(s.Max, s.CensoredMax))
}

// truncated are end-to-end times as the tool has them: between two clocks of whole milliseconds, without
// those that are 0.
func truncated(h *measure.Histogram) *measure.Histogram {
	out := measure.NewHistogram()
	h.EachBucket(func(top time.Duration, n uint64) {
		if ms := min(top, h.Max()).Truncate(time.Millisecond); ms > 0 {
			out.RecordN(ms, n)
		}
	})
	return out
}
