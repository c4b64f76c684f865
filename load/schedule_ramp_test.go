package load

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carronade/test/testkit/assert"
)

func TestRampCount(t *testing.T) {
	for _, tt := range []struct {
		name     string
		from, to float64
		over, t  time.Duration
		want     uint64
	}{
		{"whole, up", 0, 100, 10 * time.Second, 10 * time.Second, 500},
		{"half, up", 0, 100, 10 * time.Second, 5 * time.Second, 125},
		{"whole, down", 100, 0, 10 * time.Second, 10 * time.Second, 500},
		{"half, down", 100, 0, 10 * time.Second, 5 * time.Second, 375},
		{"beyond the end", 100, 0, 10 * time.Second, time.Hour, 500},
		{"level", 700_000, 700_000, 10 * time.Second, 10 * time.Second, 7_000_000},
		{"of the help", 1000, 100_000, 30 * time.Second, 30 * time.Second, 1_515_000},
		{"huge, a day", 1e6, 30e6, 24 * time.Hour, 24 * time.Hour, 15_500_000 * 86400},
		{"fractional", 0.1, 0.3, 10 * time.Second, 10 * time.Second, 2},
		{"a nanosecond", 1, 2, time.Minute, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, Ramp(tt.from, tt.to, tt.over).Count(tt.t), tt.want, "Count(%v)", tt.t)
		})
	}
}

func TestRampProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := drawRate(t, "from"), drawRate(t, "to")
		if rapid.Bool().Draw(t, "from zero") {
			from = 0
		}
		over := time.Duration(rapid.Int64Range(1, int64(200*time.Hour)).Draw(t, "over"))
		s := Ramp(from, to, over)
		integral := func(t time.Duration) float64 {
			x := t.Seconds()
			return from*x + (to-from)*x*(x/over.Seconds())/2
		}
		checkSchedule(t, s, over, integral, over.Seconds()/(1<<33)) // the error of rates that no short fraction represents
	})
}

// TestSegmentIsExact compares with fractions of unbounded size.
func TestSegmentIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := perNanosecond(drawRate(t, "from")), perNanosecond(drawRate(t, "to"))
		over := rapid.Int64Range(1, int64(200*time.Hour)).Draw(t, "over")
		x := rapid.Int64Range(0, over).Draw(t, "x")
		s := newCurve([]piece{{time.Duration(over), from, to}})
		xr := new(big.Rat).SetInt64(x)
		want := new(big.Rat).Sub(to, from)
		want.Mul(want, big.NewRat(1, 2)).Mul(want, xr).Quo(want, new(big.Rat).SetInt64(over))
		want.Add(want, from).Mul(want, xr)
		if got := s.Count(time.Duration(x)); got != ceil(want) {
			t.Fatalf("Count(%d) = %d, want %d", x, got, ceil(want))
		}
	})
}

// Where floating point decides, it agrees with the integers, and it decides nearly always.
func TestSegmentFast(t *testing.T) {
	var asked, decided int
	rapid.Check(t, func(t *rapid.T) {
		from, to := perNanosecond(drawRate(t, "from")), perNanosecond(drawRate(t, "to"))
		switch rapid.IntRange(0, 3).Draw(t, "zero") {
		case 1:
			from = new(big.Rat)
		case 2:
			to = new(big.Rat)
		}
		over := rapid.Uint64Range(1, uint64(200*time.Hour)).Draw(t, "over")
		before := big.NewRat(rapid.Int64Range(0, 1<<40).Draw(t, "before"), rapid.Int64Range(1, 1000).Draw(t, "parts"))
		s, _ := newSegment(0, over, before, from, to, big.NewInt(1000))
		var extra int256
		if rapid.Bool().Draw(t, "extra") {
			extra = int256Of(new(big.Int).Quo(s.m.big(), big.NewInt(1000))).times(rapid.Uint64Range(1, 999).Draw(t, "thousandths"))
		}
		count := func(x uint64) {
			asked++
			want := s.countExact(x, extra)
			if got := s.count(x, extra); got != want {
				t.Fatalf("count(%d) = %d, want %d", x, got, want)
			}
			if _, known := s.countFast(x, extra); known != unsure {
				decided++
			}
		}
		due := func(k uint64) {
			asked++
			want := s.dueExact(k, extra)
			if got := s.due(k, extra); got != want {
				t.Fatalf("due(%d) = %d, want %d", k, got, want)
			}
			if _, known := s.dueFast(k, extra); known != unsure {
				decided++
			}
			if want > 0 {
				count(want - 1)
			}
			count(want)
			count(want + 1) // where one event more is due, or nearly
		}
		count(rapid.Uint64Range(0, over-1).Draw(t, "x"))
		all, first := s.countExact(over-1, extra), s.countExact(0, extra)
		for _, k := range []uint64{first, first + 1, rapid.Uint64Range(first, max(first, all)).Draw(t, "k"), all, max(first, all-min(all, 1))} {
			due(k)
		}
	})
	assert.True(t, decided >= asked/2, "%d of %d were decided", decided, asked)
}

func TestStepsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "steps")
		var steps []Step
		var end time.Duration
		for range n {
			d := time.Duration(rapid.Int64Range(1, int64(10*time.Hour)).Draw(t, "length"))
			rate := drawRate(t, "rate")
			if rapid.IntRange(0, 3).Draw(t, "pause") == 0 && len(steps) > 0 {
				rate = 0
			}
			steps = append(steps, Step{Rate: rate, End: d})
			end += d
		}
		s := Steps(steps)
		if s.End() != end {
			t.Fatalf("End = %v, want %v", s.End(), end)
		}
		checkSchedule(t, s, end, func(t time.Duration) float64 {
			var sum float64
			for _, p := range s.Steps() {
				sum += p.Rate * max(0, min(t, p.End)-p.Start).Seconds()
			}
			return sum
		}, end.Seconds()/(1<<33))
	})
}

func TestSteps(t *testing.T) {
	s := Steps([]Step{
		{Rate: 20_000, End: 10 * time.Second},
		{Rate: 0, Start: time.Hour, End: time.Hour + time.Second},
		{Rate: 0.5, End: 3 * time.Second, Name: "slow"},
		{Rate: 0.5, End: 3 * time.Second},
	})
	want := []Step{
		{Name: "20,000/s", Rate: 20_000, Start: 0, End: 10 * time.Second},
		{Name: "0/s", Rate: 0, Start: 10 * time.Second, End: 11 * time.Second},
		{Name: "slow", Rate: 0.5, Start: 11 * time.Second, End: 14 * time.Second},
		{Name: "0.5/s", Rate: 0.5, Start: 14 * time.Second, End: 17 * time.Second},
	}
	assert.Same(t, s.Steps(), want)
	// The two slow steps are one and a half events each, and three together.
	assert.Equal(t, s.Count(Never), 200_003, "events")
	// The event after the pause is due when the rate is above 0 again, not when the events of the previous step are over.
	assert.Equal(t, s.Due(200_000), 11*time.Second, "when the event after the pause is due")
	assert.Equal(t, s.Rate(10500*time.Millisecond), 0, "rate in the pause")
	assert.Equal(t, s.Due(200_003), Never, "when an event after the end is due")
}

func TestStepsOfUnlikelyFractions(t *testing.T) {
	// Fractions whose common denominator does not fit are rounded, and the schedule stays sorted and within one of the integral.
	var steps []Step
	var want float64
	for i := range 50 {
		rate := 1000 + 1/float64(10_007+2*i)
		d := time.Duration(1_000_000_007 + 1_000_003*i)
		want += rate * d.Seconds()
		steps = append(steps, Step{Rate: rate, End: d})
	}
	s := Steps(steps)
	got := float64(s.Count(Never))
	assert.True(t, got >= want && got <= want+1, "%v events, want %v", got, want)
	for n := range s.Count(Never) {
		d := s.Due(n)
		assert.Must(t, s.Count(d) <= n && s.Count(d+1) > n, "Due(%d) = %d, Count there %d, Count after %d", n, d, s.Count(d), s.Count(d+1))
	}
}

func TestBadRampsAndSteps(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
	}{
		{"no time", checkRamp(1, 2, 0)},
		{"too long", checkRamp(1, 2, 2*MaxSpan)},
		{"nothing", checkRamp(0, 0, time.Second)},
		{"negative", checkRamp(-1, 2, time.Second)},
		{"no steps", checkSteps(nil)},
		{"all pauses", checkSteps([]Step{{End: 1}})},
		{"a step without length", checkSteps([]Step{{Rate: 1}})},
		{"too long together", checkSteps([]Step{{Rate: 1, End: MaxSpan}, {Rate: 1, End: MaxSpan}})},
		{"an absurd rate", checkSteps([]Step{{Rate: 1e15, End: 1}})},
	} {
		assert.True(t, tt.err != nil, "%s: no error", tt.name)
	}
}

func TestWide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) *big.Int {
			b := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 22).Draw(t, label))
			if rapid.Bool().Draw(t, label+" negative") {
				b.Neg(b)
			}
			return b
		}
		a, b, x := draw("a"), draw("b"), rapid.Uint64().Draw(t, "x")
		xb := new(big.Int).SetUint64(x)
		for _, op := range []struct {
			name string
			got  int256
			want *big.Int
		}{
			{"plus", int256Of(a).plus(int256Of(b)), new(big.Int).Add(a, b)},
			{"minus", int256Of(a).minus(int256Of(b)), new(big.Int).Sub(a, b)},
			{"times", int256Of(a).times(x), new(big.Int).Mul(a, xb)},
		} {
			assert.Must(t, op.got == int256Of(op.want), "%s: %v, want %v", op.name, op.got, op.want)
		}
		if got, want := int256Of(a).positive(), a.Sign() > 0; got != want {
			t.Fatalf("positive: %v, want %v", got, want)
		}
		if got, want := int256Of(a).atMost(int256Of(b)), a.Cmp(b) <= 0; got != want {
			t.Fatalf("atMost: %v, want %v", got, want)
		}
		want, _ := new(big.Float).SetInt(a).Float64()
		if got := int256Of(a).float(); got < want-1e-14*abs(want) || got > want+1e-14*abs(want) {
			t.Fatalf("float: %v, want %v", got, want)
		}
	})
}

func abs(x float64) float64 { return max(x, -x) }

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
		back := assert.Value(ParseShape(text))(t)
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
