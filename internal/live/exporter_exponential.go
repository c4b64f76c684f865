package live

import (
	"math"
	"time"
)

// scale is the resolution of exponential histograms: 2^5 buckets for each power
// of two, 2.2 % wide. Prometheus calls it the schema of a native histogram, OTLP
// the scale; both put a bucket's upper bound at 2^(i / 2^scale).
const scale = 5

// An exponential is a histogram in buckets of exponentially growing width, in
// seconds, as OTLP and Prometheus's native histograms have them
// (https://opentelemetry.io/docs/specs/otel/metrics/data-model/#exponentialhistogram,
// https://prometheus.io/docs/specs/native_histograms/).
// A value is counted in the bucket of its cell's upper end, which is up to 0.1 %
// above the value.
type exponential struct {
	name, help string
	count      uint64
	sum        float64 // s
	min, max   float64 // s
	// Buckets by the index of Prometheus: bucket i ends at 2^(i/32) and
	// includes its end. OTLP's index of the same bucket is one less.
	buckets map[int]int64
	classic []uint64 // cumulative counts of the bounds below
}

// bounds are the upper ends, in seconds, of the classic buckets of Prometheus:
// 1, 2.5, 5 in each power of ten from 10 us to 100 s.
var bounds = func() (b []float64) {
	for e := -5; e <= 1; e++ {
		for _, m := range []float64{1, 2.5, 5} {
			b = append(b, m*math.Pow10(e))
		}
	}
	return append(b, 100)
}()

// exponentialOf converts a time's histogram.
func exponentialOf(t namedTimes) exponential {
	e := exponential{
		name: t.name, help: t.help, count: t.h.Count(), sum: t.h.Sum() / float64(time.Second),
		min: t.h.Min().Seconds(), max: t.h.Max().Seconds(),
		buckets: make(map[int]int64), classic: make([]uint64, len(bounds)),
	}
	t.h.EachBucket(func(top time.Duration, n uint64) {
		s := top.Seconds()
		if s > e.max || top < 0 {
			s = e.max // the last cell ends at the largest value, even beyond the range
		}
		e.buckets[bucket(s)] += int64(n)
		for i := len(bounds) - 1; i >= 0 && s <= bounds[i]*(1+1e-9); i-- { // despite rounding errors of the bounds
			e.classic[i] += n
		}
	})
	return e
}

// bucket is the index of the bucket of s seconds, which must be above 0.
func bucket(s float64) int {
	const least = 1e-9
	return int(math.Ceil(math.Log2(max(s, least))*(1<<scale) - 1e-9))
}
