package load

import (
	"math"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"pgregory.net/rapid"
)

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

// drawRate draws integer, fractional and huge rates, and rates that no short fraction
// represents.
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
