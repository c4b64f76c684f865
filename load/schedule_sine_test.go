package load

import (
	"math"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"pgregory.net/rapid"
)

func sineIntegral(mean, amplitude float64, period time.Duration) func(time.Duration) float64 {
	return func(t time.Duration) float64 {
		k := float64(t / period)
		x := (t % period).Seconds()
		p := period.Seconds()
		return mean*p*k + mean*x + amplitude*p/(2*math.Pi)*(1-math.Cos(2*math.Pi*x/p))
	}
}

func TestSineCount(t *testing.T) {
	for _, tt := range []struct {
		name            string
		mean, amplitude float64
		period, t       time.Duration
		want            uint64
	}{
		{"a period", 50_000, 10_000, time.Minute, time.Minute, 3_000_000},
		{"a week", 50_000, 50_000, time.Minute, 7 * 24 * time.Hour, 50_000 * 7 * 86400},
		{"half a period", 100, 100, 10 * time.Second, 5 * time.Second, 819}, // 500 + 1000/pi
		{"periods of a third of an event", 1. / 3, 0.1, time.Second, 3000 * time.Second, 1000},
		{"a swing of more than 2^32 events", 4e7, 4e7, 10 * time.Minute, 5 * time.Minute, 19_639_437_269}, // 1.2e10 + 2.4e10/pi
		{"no swing", 700_000, 0, time.Second, 10 * time.Second, 7_000_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, Sine(tt.mean, tt.amplitude, tt.period).Count(tt.t), tt.want, "Count(%v)", tt.t)
		})
	}
}

func TestSineProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mean := drawRate(t, "mean")
		amplitude := mean * rapid.SampledFrom([]float64{0, 0.2, 0.999, 1}).Draw(t, "share")
		period := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(10*time.Minute)).Draw(t, "period"))
		checkSchedule(t, Sine(mean, amplitude, period), 200*time.Hour, sineIntegral(mean, amplitude, period), 0.02) // as Sine documents
	})
}

// TestSineAtItsTrough checks the neighbourhood of zero rate, where a rounding error
// would make Count fall.
func TestSineAtItsTrough(t *testing.T) {
	s := Sine(1e7, 1e7, time.Second)
	var last uint64
	for x := 749 * time.Millisecond; x < 751*time.Millisecond; x += 101 {
		c := s.Count(x)
		assert.Must(t, c >= last, "Count(%d) = %d after %d", x, c, last)
		last = c
	}
	got := s.Rate(750 * time.Millisecond)
	assert.True(t, got <= 1e-3, "rate at the trough: %v", got)
}

func TestSineStaysNear(t *testing.T) {
	const mean, amplitude, period = 1e6, 1e6, time.Minute
	s, f := Sine(mean, amplitude, period), sineIntegral(mean, amplitude, period)
	for x := time.Duration(1); x < period; x += 12_345_679 {
		got, want := float64(s.Count(x)), f(x)
		assert.Must(t, got >= want-0.05 && got <= want+1.05, "Count(%d) = %v, want ceil of %v", x, got, want)
	}
}

func TestBadSines(t *testing.T) {
	for _, tt := range []struct {
		name            string
		mean, amplitude float64
		period          time.Duration
	}{
		{"no mean", 0, 0, time.Second},
		{"below zero", 1, 2, time.Second},
		{"negative", 1, -1, time.Second},
		{"not a number", 1, math.NaN(), time.Second},
		{"no period", 1, 1, 0},
		{"a long period", 1, 1, 1000 * time.Hour},
	} {
		assert.True(t, checkSine(tt.mean, tt.amplitude, tt.period) != nil, "%s: no error", tt.name)
	}
}

func TestBurst(t *testing.T) {
	s := Burst(1000, time.Second)
	for _, tt := range []struct {
		name string
		t    time.Duration
		want uint64
	}{
		{"at the start", 0, 0},
		{"the first", 1, 1000},
		{"before the second", time.Second, 1000},
		{"the second", time.Second + 1, 2000},
		{"a week", 7 * 24 * time.Hour, 604_800_000},
	} {
		assert.Equal(t, s.Count(tt.t), tt.want, "%s: Count(%d)", tt.name, tt.t)
	}
	assert.Equal(t, s.Due(1999), time.Second, "Due(1999)")
	assert.Equal(t, s.Due(math.MaxUint64), Never, "when the last number is due")
	assert.Equal(t, s.Rate(0), 1000, "Rate")
}

func TestBurstProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 10_000).Draw(t, "n")
		every := time.Duration(rapid.Int64Range(1000, int64(time.Hour)).Draw(t, "every"))
		checkSchedule(t, Burst(n, every), 24*time.Hour, nil, 0)
	})
}
