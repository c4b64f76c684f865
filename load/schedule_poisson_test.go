package load

import (
	"math"
	"math/bits"
	"sync"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"pgregory.net/rapid"
)

func TestPoissonProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := min(drawRate(t, "rate"), 1e8)
		seed := rapid.Uint64().Draw(t, "seed")
		checkSchedule(t, Poisson(rate, seed), 200*time.Hour, nil, 0)
	})
}

// TestPoissonInOrder checks consecutive events across leaves and spans.
func TestPoissonInOrder(t *testing.T) {
	s := Poisson(5000, 7)
	var last time.Duration
	for n := range uint64(50_000) {
		d := s.Due(n)
		assert.Must(t, d >= last, "Due(%d) = %d, after %d", n, d, last)
		c := s.Count(d)
		assert.Must(t, c <= n, "Due(%d) = %d, but %d events are due before", n, d, c)
		c = s.Count(d + 1)
		assert.Must(t, c > n, "Due(%d) = %d, but %d events are due until then", n, d, c)
		last = d
	}
}

func TestPoissonRepeats(t *testing.T) {
	a, b, c := Poisson(1000, 1), Poisson(1000, 1), Poisson(1000, 2)
	same := 0
	for _, n := range []uint64{9_999_999, 0, 12, 5_000_000_000, 13, 999} {
		assert.Equal(t, a.Due(n), b.Due(n), "when event %d is due", n)
		if a.Due(n) == c.Due(n) {
			same++
		}
	}
	assert.True(t, same <= 0, "another seed has %d events at the same times", same)
}

// TestPoissonGaps compares the gaps with the exponential distribution by the
// Kolmogorov-Smirnov test, and the variance of the counts per second with their mean.
func TestPoissonGaps(t *testing.T) {
	const rate, n = 1000.0, 200_000
	s := Poisson(rate, 42)
	// KS without sorting: counts in 1000 bins of equal probability.
	var bins [1000]int
	last := s.Due(0)
	for i := uint64(1); i <= n; i++ {
		d := s.Due(i)
		p := 1 - math.Exp(-rate*(d-last).Seconds())
		bins[min(int(p*1000), 999)]++
		last = d
	}
	var chi, cum, ks float64
	for i, b := range bins {
		e := float64(n) / 1000
		chi += (float64(b) - e) * (float64(b) - e) / e
		cum += float64(b)
		ks = max(ks, math.Abs(cum/n-float64(i+1)/1000))
	}
	assert.True(t, ks <= 1.63/math.Sqrt(n), "Kolmogorov-Smirnov distance %v of the gaps", ks)
	assert.True(t, chi <= 999+4*math.Sqrt(2*999), "chi square %v of the gaps over 999 degrees of freedom", chi)

	var sum, squares float64
	const seconds = 5000
	for i := range seconds {
		c := float64(s.Count(time.Duration(i+1)*time.Second) - s.Count(time.Duration(i)*time.Second))
		sum += c
		squares += c * c
	}
	mean := sum / seconds
	variance := squares/seconds - mean*mean
	assert.True(t, math.Abs(mean-rate) <= 4*math.Sqrt(rate/seconds), "%v events a second, want %v", mean, rate)
	r := variance / rate
	assert.True(t, math.Abs(r-1) <= 4*math.Sqrt(2./seconds), "variance of the count a second is %v of the mean, want 1", r)
}

func TestPoissonConcurrently(t *testing.T) {
	s := Poisson(100_000, 3)
	want := make([]time.Duration, 4000)
	for n := range want {
		want[n] = Poisson(100_000, 3).Due(uint64(n))
	}
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for n := g; n < len(want); n += 3 {
				assert.Equal(t, s.Due(uint64(n)), want[n], "Due(%d)", n)
			}
		})
	}
	group.Wait()
}

func TestRandomNumbers(t *testing.T) {
	for _, tt := range []struct {
		name           string
		mean, variance float64
		draw           func(*random) uint64
	}{
		{"half of 7", 3.5, 1.75, func(r *random) uint64 { return r.half(7) }},
		{"half of 1000", 500, 250, func(r *random) uint64 { return r.half(1000) }},
		{"half of 1024", 512, 256, func(r *random) uint64 { return r.half(1024) }},
		{"half of 1025", 512.5, 256.25, func(r *random) uint64 { return r.half(1025) }},
		{"half of a million", 5e5, 2.5e5, func(r *random) uint64 { return r.half(1e6) }},
		{"Poisson of 0.5", 0.5, 0.5, func(r *random) uint64 { return r.poisson(0.5) }},
		{"Poisson of 9", 9, 9, func(r *random) uint64 { return r.poisson(9) }},
		{"Poisson of 12", 12, 12, func(r *random) uint64 { return r.poisson(12) }},
		{"Poisson of 1e6", 1e6, 1e6, func(r *random) uint64 { return r.poisson(1e6) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const n = 20_000
			r := random(99)
			var sum, squares float64
			for range n {
				d := float64(tt.draw(&r)) - tt.mean
				sum += d
				squares += d * d
			}
			e := sum / n
			assert.True(t, math.Abs(e) <= 4*math.Sqrt(tt.variance/n), "the mean is off by %v", e)
			// The variance of a squared deviation is at most about 2v^2 + v.
			if v := squares / n; math.Abs(v-tt.variance) > 4*math.Sqrt((2*tt.variance*tt.variance+tt.variance)/n) {
				t.Errorf("variance %v, want %v", v, tt.variance)
			}
		})
	}
	r := random(5)
	for n := range uint64(3000) {
		h := r.half(n)
		assert.Must(t, h <= n, "half of %d is %d", n, h)
	}
	assert.True(t, bits.OnesCount64(mix(0)) != 0, "mix(0) is 0")
}
