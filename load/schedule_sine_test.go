package load

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carronade/test/testkit/assert"
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

// TestSineAtItsTrough checks the neighbourhood of zero rate, where a rounding error would make Count fall.
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

func TestParseShape(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		end, at    time.Duration
		count      uint64
		rate       float64
		steps      int
	}{
		{"constant", "constant(50k/s)", Never, time.Second, 50_000, 50_000, 0},
		{"constant for a while", "constant(50k/s):10s", 10 * time.Second, 5 * time.Second, 250_000, 50_000, 0},
		{"spaces and case", " Constant( 50k/s ) : 10s ", 10 * time.Second, 5 * time.Second, 250_000, 50_000, 0},
		{"ramp", "ramp(0/s,100/s,10s)", 10 * time.Second, 5 * time.Second, 125, 50, 0},
		{"ramp cut", "ramp(0/s,100/s,10s):5s", 5 * time.Second, 5 * time.Second, 125, 0, 0},
		{"steps", "steps(10k/s:10s,20k/s:10s)", 20 * time.Second, 15 * time.Second, 200_000, 20_000, 2},
		{"stairs", "steps(10k/s..100k/s,10k/s,10s)", 100 * time.Second, 15 * time.Second, 200_000, 20_000, 10},
		{"stairs down", "steps(30/s..10/s,10/s,10s)", 30 * time.Second, 25 * time.Second, 550, 10, 3},
		{"stairs that do not fit", "steps(10/s..35/s,10/s,10s)", 30 * time.Second, 25 * time.Second, 450, 30, 3},
		{"stairs of tenths", "steps(0.1/s..0.7/s,0.1/s,10s)", 70 * time.Second, 25 * time.Second, 5, 0.3, 7},
		{"sine", "sine(50k/s,10k/s,60s)", Never, 60 * time.Second, 3_000_000, 50_000, 0},
		{"burst", "burst(1000,1s)", Never, 10 * time.Second, 10_000, 1000, 0},
		{"poisson", "poisson(5k/s,1)", Never, 0, 0, 5000, 0},
		{"joined", "constant(1k/s):10s+ramp(1k/s,3k/s,10s)+constant(3k/s)", Never, 20 * time.Second, 30_000, 3000, 3},
		{"joined with steps", "constant(1k/s):10s + steps(10/s..20/s,10/s,1s)", 12 * time.Second, 12 * time.Second, 10_030, 0, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := assert.Value(ParseShape(tt.text))(t)
			assert.Equal(t, s.End(), tt.end, "End")
			assert.Equal(t, s.Count(tt.at), tt.count, "Count(%v)", tt.at)
			assert.Equal(t, s.Rate(tt.at), tt.rate, "Rate(%v)", tt.at)
			var steps int
			if st, ok := s.(Stepped); ok {
				steps = len(st.Steps())
			}
			assert.Equal(t, steps, tt.steps, "steps")
		})
	}
}

func TestParseShapeErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "shapes are"},
		{"unknown", "square(1k/s)", `unknown shape "square"`},
		{"a bare rate", "50k/s", "unknown shape"},
		{"no parentheses", "constant", "constant(RATE)"},
		{"open", "constant(1k/s", "a ( without its )"},
		{"closed twice", "constant(1k/s))", "a ) without its ("},
		{"no value", "constant()", "empty value"},
		{"too many values", "constant(1,2)", "constant(RATE)"},
		{"too few values", "ramp(1,2)", "ramp(RATE,RATE,TIME)"},
		{"a bad rate", "constant(fast)", "fast"},
		{"rate zero", "constant(0/s)", "not above 0"},
		{"an absurd rate", "constant(1000000000g/s)", ""},
		{"a time without unit", "ramp(1,2,3)", "3"},
		{"words after", "constant(1k/s)10s", ":TIME"},
		{"nested", "constant(ramp(1,2,3s))", "is not a value"},
		{"plus at the end", "constant(1k/s):1s+", "shapes are"},
		{"endless, and more", "constant(1k/s)+constant(2k/s)", "phase 1 never ends"},
		{"longer than itself", "ramp(1/s,2/s,10s):20s", "ends after 10s"},
		{"no time", "constant(1k/s):0s", "not above 0"},
		{"in the second phase", "constant(1k/s):1s+ramp(1,2)", "phase 2"},
		{"a step without time", "steps(1k/s)", "RATE:TIME"},
		{"both forms", "steps(1/s..2/s:10s)", "steps("},
		{"stairs that do not rise", "steps(1/s..2/s,0/s,1s)", "has no effect"},
		{"too many stairs", "steps(1/s..1m/s,1/s,1s)", "more than 10000 steps"},
		{"only pauses", "steps(0/s:10s)", "all rates are 0"},
		{"a sine below zero", "sine(1/s,2/s,1m)", "amplitude"},
		{"no burst", "burst(0,1s)", "0 events"},
		{"a seed of letters", "poisson(1/s,x)", "seed"},
		{"a year", "constant(1/s):9000h", "longer than 100 days"},
		{"a year together", "constant(1/s):2000h+constant(1/s):2000h", "longer than 100 days"},
		{"steps of a year", "steps(1/s:2000h,2/s:2000h)", "longer than 100 days"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := ParseShape(tt.text)
			assert.Must(t, err != nil, "no error, but %v", s)
			assert.True(t, strings.Contains(err.Error(), tt.want), "%q does not say %q", err, tt.want)
		})
	}
}

// TestShapesReadBack checks that the String of a schedule parses to the same schedule.
func TestShapesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule(Joined(drawSchedule(t, "first"), drawSchedule(t, "second")))
		text := fmt.Sprint(s)
		back, err := ParseShape(text)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Duration(rapid.Int64Range(0, int64(s.End())).Draw(t, "at"))
		if got, want := back.Count(at), s.Count(at); got != want {
			t.Fatalf("%s: Count(%v) = %d, want %d", text, at, got, want)
		}
	})
}

// TestShapeForms checks that every example in the help is valid.
func TestShapeForms(t *testing.T) {
	examples := 0
	for line := range strings.SplitSeq(ShapeForms, "\n") {
		_, rest, ok := strings.Cut(line, "such as ")
		if !ok {
			continue
		}
		examples++
		assert.Value(ParseShape(rest))(t)
		assert.True(t, len(line) <= 80, "too wide: %s", line)
	}
	assert.True(t, examples >= 9, "only %d examples found", examples)
}

func FuzzParseShape(f *testing.F) {
	for _, seed := range []string{
		"constant(50k/s)", "ramp(1k/s,100k/s,30s)", "steps(10k/s:10s,20k/s:10s)", "steps(10k/s..100k/s,10k/s,10s)",
		"sine(50k/s,10k/s,60s)", "burst(1000,1s)", "poisson(5k/s,3)", "constant(1k/s):10s+ramp(1/s,2/s,3s)", "((", "+:", "steps(..,,)",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseShape(text)
		if err != nil {
			return
		}
		// The parsed schedule can be used.
		for _, at := range []time.Duration{0, 1, time.Second, time.Hour, Never} {
			c := s.Count(at)
			d := s.Due(c)
			assert.True(t, d >= at, "%q: Count(%d) = %d, but that event is due at %d", text, at, c, d)
		}
	})
}
