package profile

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/test/testkit/assert"
	"carronade/units"
)

// arrivals are the times of the first n events of a shape, or of all.
func arrivals(t *testing.T, shape string, n uint64) *Arrivals {
	t.Helper()
	s := assert.Value(load.ParseShape(shape))(t)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var a Arrivals
	end := s.End()
	for i := range n {
		due := s.Due(i)
		if end != load.Never && due >= end {
			break
		}
		a.Add(start.Add(due).UnixNano())
	}
	return &a
}

func TestPaceFitRecoversParameters(t *testing.T) {
	for _, test := range []struct {
		name, shape string
		n           uint64
		family      string
		values      []string // in the fitted shape, each at most 5 % off
	}{
		{"constant", "constant(2k/s)", 20_000, ConstantPace, []string{"2k/s", "10s"}},
		{"slow", "constant(20/s)", 2000, ConstantPace, []string{"20/s", "100s"}},
		{"poisson", "poisson(2k/s)", 40_000, PoissonPace, []string{"2k/s", "20s"}},
		{"ramp", "ramp(1k/s,5k/s,10s)", 1e6, RampPace, []string{"1k/s", "5k/s", "10s"}},
		{"burst", "burst(500,1s)", 10_000, BurstPace, []string{"500", "1s", "20s"}},
		{"a long time", "constant(1/s)", 200_000, ConstantPace, []string{"1/s", "200000s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := arrivals(t, test.shape, test.n).Fit(1)
			got := strings.FieldsFunc(f.Shape, func(r rune) bool { return strings.ContainsRune("(),:", r) })
			assert.Must(t, f.Family == test.family && len(got) == len(test.values)+1,
				"got %s %s, want %s of %v", f.Family, f.Shape, test.family, test.values)
			for i, want := range test.values {
				g, w := number(t, got[i+1]), number(t, want)
				if math.Abs(g-w) > 0.05*w {
					t.Errorf("got %s in %s, want %s", got[i+1], f.Shape, want)
				}
			}
			assert.True(t, f.Error <= 0.05, "got a distance of %.3f, want at most 0.05", f.Error)
		})
	}
}

// number reads a rate, a time or a count.
func number(t *testing.T, text string) float64 {
	t.Helper()
	if r, err := units.ParseRate(text); err == nil && strings.Contains(text, "/") {
		return r
	}
	if d, err := units.ParseDuration(text); err == nil {
		return d.Seconds()
	}
	f := assert.Value(strconv.ParseFloat(text, 64))(t)
	return f
}

func TestPaceOfSteps(t *testing.T) {
	f := arrivals(t, "steps(1k/s:5s,4k/s:5s,500/s:5s)", 1e6).Fit(1)
	assert.Must(t, f.Family == StepsPace && f.Error <= 0.02,
		"got %s %s with a distance of %.3f, want steps within 0.02", f.Family, f.Shape, f.Error)
	s := assert.Value(load.ParseShape(f.Shape))(t)
	for _, want := range []struct {
		at   time.Duration
		rate float64
	}{{2500 * time.Millisecond, 1000}, {7500 * time.Millisecond, 4000}, {12 * time.Second, 500}} {
		got := float64(s.Count(want.at+500*time.Millisecond) - s.Count(want.at-500*time.Millisecond))
		assert.True(t, math.Abs(got-want.rate) <= 0.05*want.rate, "got %.0f/s at %v of %s, want %.0f/s", got, want.at, f.Shape, want.rate)
	}
}

func TestDispersion(t *testing.T) {
	for _, test := range []struct {
		shape    string
		from, to float64
	}{
		{"constant(10k/s)", 0, 0.05},
		{"poisson(10k/s)", 0.7, 1.3},
		{"burst(1000,100ms)", 100, 2000},
	} {
		t.Run(test.shape, func(t *testing.T) {
			d, ok := arrivals(t, test.shape, 100_000).Dispersion(100)
			assert.True(t, ok && d.Index >= test.from && d.Index <= test.to, "got %+v, want an index from %v to %v", d, test.from, test.to)
		})
	}
}

func TestArrivalsOutOfOrder(t *testing.T) {
	var a Arrivals
	for _, s := range []int64{1000, 1, 500_000, 7} {
		a.Add(s * 1e9)
	}
	if a.Count() != 4 || a.Span() != 499_999*time.Second || a.last-a.first >= maxBins {
		t.Errorf("got %d events over %v in bins %d to %d, want 4 over 499999s in fewer than %d", a.Count(), a.Span(), a.first, a.last, maxBins)
	}
	total := uint64(0)
	for _, n := range a.bins {
		total += n
	}
	assert.Equal(t, total, 4, "events in bins")
	f := a.Fit(1)
	assert.True(t, f.Family == NoPace, "got %s of 4 events, want none", f.Family)
}
