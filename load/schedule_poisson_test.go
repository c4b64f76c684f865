package load

import (
	"math"
	"math/bits"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carronade/test/testkit/assert"
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

func TestConstantCount(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for _, tt := range []struct {
		name string
		rate float64
		t    time.Duration
		want uint64
	}{
		{"seven million", 700_000, 10 * time.Second, 7_000_000},
		{"before the start", 700_000, -time.Second, 0},
		{"at the start", 700_000, 0, 0},
		{"the first event", 0.5, 1, 1},
		{"a tenth a second, 10 s", 0.1, 10 * time.Second, 1},
		{"a tenth a second, just after", 0.1, 10*time.Second + 1, 2},
		{"fifty a minute", 50. / 60, 6 * time.Second, 5},
		{"a third a second, a week", 1. / 3, week, 7 * 24 * 1200},
		{"33.333/s", 33.333, 1000 * time.Second, 33_333},
		{"twelve million and a bit", 12_000_000.5, 2 * time.Second, 24_000_001},
		{"thirty million, a week", 30e6, week, 30e6 * 7 * 86400},
		{"700,000/s, a week", 700_000, week, 700_000 * 7 * 86400},
		{"one in eleven days", 1e-6, 1_000_000 * time.Second, 1},
		{"the largest", MaxRate, time.Second, 1e12},
		{"more than can be counted", MaxRate, Never, math.MaxUint64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, Constant(tt.rate).Count(tt.t), tt.want, "Constant(%v).Count(%v)", tt.rate, tt.t)
		})
	}
}

func TestConstantDue(t *testing.T) {
	for _, tt := range []struct {
		name string
		rate float64
		n    uint64
		want time.Duration
	}{
		{"first", 3, 0, 0},
		{"a third", 3, 1, 333_333_333},
		{"no sum of rounded thirds", 3, 3_000_000, 1_000_000 * time.Second},
		{"two a nanosecond", 2e9, 5, 2},
		{"beyond time", 1e-6, 1 << 40, Never},
		{"the last number", 1, math.MaxUint64, Never},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, Constant(tt.rate).Due(tt.n), tt.want, "Constant(%v).Due(%d)", tt.rate, tt.n)
		})
	}
}

func TestFraction(t *testing.T) {
	for _, tt := range []struct {
		name     string
		rate     float64
		num, den uint64
	}{
		{"whole", 700_000, 7, 10_000},
		{"tenth", 0.1, 1, 10e9},
		{"five sixths", 50. / 60, 1, 1_200_000_000},
		{"a day", 1. / 86400, 1, 86400e9},
		{"zero", 0, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			num, den := fraction(tt.rate)
			assert.True(t, num == tt.num && den == tt.den, "fraction(%v) = %d/%d, want %d/%d", tt.rate, num, den, tt.num, tt.den)
		})
	}
}

func TestFractionIsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := math.Exp(rapid.Float64Range(math.Log(MinRate), math.Log(MaxRate)).Draw(t, "ln rate"))
		num, den := fraction(rate)
		got := float64(num) / float64(den) * 1e9
		if math.Abs(got-rate) > 1.2e-10*min(rate, 1)+1e-15*rate {
			t.Fatalf("fraction(%v) = %d/%d, which is %v/s", rate, num, den, got)
		}
	})
}

func TestCheckRate(t *testing.T) {
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e13, 1e-7} {
		assert.True(t, CheckRate(bad) != nil, "CheckRate(%v) found nothing", bad)
	}
	for _, good := range []float64{MinRate, 0.5, 1, 50_000, 10_000_001.5, MaxRate} {
		assert.OK(t, CheckRate(good), "CheckRate(%v)", good)
	}
}

func TestConstantProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := drawRate(t, "rate")
		const span = 14 * 24 * time.Hour
		stray := span.Seconds() / (1 << 33) // the error of rates that no short fraction represents
		checkSchedule(t, Constant(rate), span, func(t time.Duration) float64 { return rate * t.Seconds() }, stray)
	})
}

// drawRate draws integer, fractional and huge rates, and rates that no short fraction represents.
func drawRate(t *rapid.T, label string) float64 {
	return rapid.OneOf(
		rapid.Map(rapid.IntRange(1, 50_000_000), func(i int) float64 { return float64(i) }),
		rapid.Map(rapid.IntRange(1, 100_000), func(i int) float64 { return float64(i) / 1000 }),
		rapid.Map(rapid.IntRange(1, 10_000), func(i int) float64 { return float64(i) / 60 }),
		rapid.Map(rapid.Float64Range(-4, 8), func(e float64) float64 { return math.Pow(10, e) }),
	).Draw(t, label)
}

// checkSchedule checks at random positions within span that Due and Count never
// decrease and are exact inverses. If an integral is given, it also checks that the
// count in any window differs from it by at most one plus what the schedule may stray.
func checkSchedule(t *rapid.T, s Schedule, span time.Duration, integral func(time.Duration) float64, stray float64) {
	t.Helper()
	at := rapid.Int64Range(0, int64(min(span, s.End())))
	a := time.Duration(at.Draw(t, "a"))
	b := time.Duration(at.Draw(t, "b"))
	if a > b {
		a, b = b, a
	}
	ca, cb := s.Count(a), s.Count(b)
	if ca > cb {
		t.Fatalf("Count(%d) = %d, but Count(%d) = %d", a, ca, b, cb)
	}
	if c := s.Count(a + 1); c < ca {
		t.Fatalf("Count(%d) = %d, but a nanosecond later %d", a, ca, c)
	}
	if ca > 0 {
		if d := s.Due(ca - 1); d >= a {
			t.Fatalf("Count(%d) = %d, but its last event is due at %d", a, ca, d)
		}
	}
	if d := s.Due(ca); d < a {
		t.Fatalf("Count(%d) = %d, but the next event is due at %d", a, ca, d)
	}
	if cb > 0 {
		n := rapid.Uint64Range(0, cb-1).Draw(t, "n")
		d := s.Due(n)
		if c := s.Count(d); c > n {
			t.Fatalf("Due(%d) = %d, but %d events are due before", n, d, c)
		}
		if c := s.Count(d + 1); c <= n {
			t.Fatalf("Due(%d) = %d, but only %d events are due until then", n, d, c)
		}
		if next := s.Due(n + 1); next < d {
			t.Fatalf("Due(%d) = %d, but Due(%d) = %d", n, d, n+1, next)
		}
	}
	if integral != nil {
		got, want := float64(cb-ca), integral(b)-integral(a)
		if math.Abs(got-want) > 1+2*stray+1e-9+1e-14*(integral(b)+1) {
			t.Fatalf("%v events due in [%d, %d), want %v within one", got, a, b, want)
		}
	}
}
