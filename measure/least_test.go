package measure

import (
	"math/rand/v2"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// Every percentile of the result is the least of those of the histograms, and its count
// is that of the first.
func TestLeastOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	fill := func(n int, scale, shift float64) *Histogram {
		h := NewHistogram()
		for range n {
			h.Record(time.Duration(shift + scale*rng.ExpFloat64()))
		}
		return h
	}
	for _, tt := range []struct {
		name string
		hs   []*Histogram
	}{
		{"one", []*Histogram{fill(1000, 1e6, 0)}},
		{"crossing", []*Histogram{fill(100_000, 1e6, 2e6), fill(100_000, 5e6, 0)}},
		{"of other counts", []*Histogram{fill(20_000, 1e6, 1e6), fill(150, 2e6, 0), nil, NewHistogram(), fill(70_000, 1e3, 3e6)}},
		{"compact", []*Histogram{fill(5000, 1e6, 2e6).Compact(), fill(5000, 5e6, 0)}},
		{"beyond the range", []*Histogram{fill(1000, 1e12, 5e12), fill(1000, 3e12, 0)}},
		{"below the range", []*Histogram{fill(1000, 100, 0), fill(1000, 1e6, 0)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := LeastOf(tt.hs...)
			assert.Must(t, got.Count() == tt.hs[0].Count(), "counted %d, want %d", got.Count(), tt.hs[0].Count())
			mean := tt.hs[0].Mean()
			for _, p := range []float64{0.1, 1, 10, 50, 90, 99, 99.9, 100} {
				want := time.Duration(1 << 62)
				for _, h := range tt.hs {
					if h.Count() > 0 {
						want = min(want, h.Percentile(p))
						mean = min(mean, h.Mean())
					}
				}
				// With another count, a rank may fall between two of a histogram.
				slack := time.Duration(0)
				if len(tt.hs) > 2 {
					slack = want / 10
				}
				assert.True(t, (got.Percentile(p)-want).Abs() <= slack, "p%v is %v, want %v", p, got.Percentile(p), want)
			}
			assert.True(t, (got.Mean()-mean).Abs() <= 1, "the mean is %v, want %v", got.Mean(), mean)
			again := NewHistogram() // all cells are within the span
			again.Merge(got)
			assert.True(t, again.Percentile(99) == got.Percentile(99) && again.Count() == got.Count(),
				"merged: p99 %v of %d, want %v of %d", again.Percentile(99), again.Count(), got.Percentile(99), got.Count())
		})
	}
	if got := LeastOf(nil, NewHistogram()); got.Count() != 0 || got.Percentile(50) != 0 {
		t.Errorf("of empty histograms: %d values, p50 %v", got.Count(), got.Percentile(50))
	}
}
