package load

import (
	"math/big"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"pgregory.net/rapid"
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
	// The event after the pause is due when the rate is above 0 again, not when the
	// events of the previous step are over.
	assert.Equal(t, s.Due(200_000), 11*time.Second, "when the event after the pause is due")
	assert.Equal(t, s.Rate(10500*time.Millisecond), 0, "rate in the pause")
	assert.Equal(t, s.Due(200_003), Never, "when an event after the end is due")
}

func TestStepsOfUnlikelyFractions(t *testing.T) {
	// Fractions whose common denominator does not fit are rounded, and the schedule
	// stays sorted and within one of the integral.
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
		if s.Count(d) > n || s.Count(d+1) <= n {
			t.Fatalf("Due(%d) = %d, Count there %d, Count after %d", n, d, s.Count(d), s.Count(d+1))
		}
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
			if op.got != int256Of(op.want) {
				t.Fatalf("%s: %v, want %v", op.name, op.got, op.want)
			}
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
