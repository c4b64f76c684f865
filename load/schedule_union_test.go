package load

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carronade/test/testkit/assert"
)

// TestUnion: the events of a union are those of its schedules in order of their due times, and
// its partitioner finds each of them.
func TestUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var of []Schedule
		for range rapid.IntRange(1, 4).Draw(t, "schedules") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				of = append(of, Constant(float64(rapid.IntRange(1, 2000).Draw(t, "rate"))))
			case 1:
				of = append(of, Burst(uint64(rapid.IntRange(1, 50).Draw(t, "events")), time.Duration(rapid.IntRange(1, 300).Draw(t, "ms"))*time.Millisecond))
			case 2:
				of = append(of, Until(Constant(1000), time.Duration(rapid.IntRange(1, 500).Draw(t, "until"))*time.Millisecond))
			default:
				of = append(of, Burst(1, time.Millisecond))
			}
		}
		type event struct {
			due  time.Duration
			of   int32
			k    uint64
			tied int
		}
		const span = 400 * time.Millisecond
		var want []event
		for i, s := range of {
			for k := range s.Count(span) {
				want = append(want, event{s.Due(k), int32(i), k, i})
			}
		}
		slices.SortStableFunc(want, func(a, b event) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.tied, b.tied)) })
		u, p := Union(of...), unionPartitioner(of)
		if u.Count(span) != uint64(len(want)) {
			t.Fatalf("%d events, want %d", u.Count(span), len(want))
		}
		before := make([]uint64, len(of))
		for n, e := range want {
			if due := u.Due(uint64(n)); due != e.due {
				t.Fatalf("event %d is due at %v, want %v", n, due, e.due)
			}
			if got := p.Event(e.of, e.k); got != uint64(n) {
				t.Fatalf("event %d of schedule %d is number %d, want %d", e.k, e.of, got, n)
			}
			for i := range of {
				if got := p.Before(int32(i), uint64(n)); got != before[i] {
					t.Fatalf("%d events of schedule %d before number %d, want %d", got, i, n, before[i])
				}
			}
			before[e.of]++
		}
		for i, s := range of {
			if s.End() == Never {
				continue
			}
			if got := p.Event(int32(i), s.Count(Never)); got != math.MaxUint64 {
				t.Errorf("an event after the end of schedule %d is number %d", i, got)
			}
			if got := p.Before(int32(i), math.MaxUint64); got != s.Count(Never) {
				t.Errorf("%d events of schedule %d in all, want %d", got, i, s.Count(Never))
			}
		}
	})
}

// A countedSchedule counts how often it is asked.
type countedSchedule struct {
	Schedule
	asked *int
}

func (s countedSchedule) Count(t time.Duration) uint64 {
	*s.asked++
	return s.Schedule.Count(t)
}

// TestUnionBeforeOfManyStreams: the streams of a part share the search for a bound of a phase.
func TestUnionBeforeOfManyStreams(t *testing.T) {
	const streams = 100
	asked := 0
	of := []Schedule{Constant(1000), Burst(7, 10*time.Millisecond), Constant(333)}
	var parts []Part
	for _, s := range of {
		parts = append(parts, Part{Name: "part", Schedule: countedSchedule{s, &asked}, Target: newFake(RoundRobin(streams), 1, nil)})
	}
	m := assert.Value(NewMix(parts))(t)
	p, plain := m.Partitioner(), unionPartitioner(of)
	bounds := []uint64{0, 1, 1000, 123_456, math.MaxUint64}
	for i := range of {
		for k := range int32(streams) {
			before := asked
			for _, n := range bounds {
				s := int32(i*streams) + k
				got, want := p.Before(s, n), RoundRobin(streams).Before(k, plain.Before(int32(i), n))
				assert.Must(t, got == want, "%d events of stream %d before number %d, want %d", got, s, n, want)
			}
			assert.Must(t, k <= 0 || asked == before,
				"stream %d of part %d asked the schedules %d times, want 0 after the first stream", k, i, asked-before)
		}
	}
	assert.True(t, asked != 0, "the schedules were never asked")
}

func TestJoined(t *testing.T) {
	s := Joined(
		Until(Constant(1000), 10*time.Second),
		Steps([]Step{{Rate: 10, End: time.Second}, {Rate: 20, End: time.Second}}),
		Until(Constant(1e-6), time.Second), // one event, at its start
		Constant(2.5),
	)
	want := []Step{
		{Name: "1,000/s", Rate: 1000, Start: 0, End: 10 * time.Second},
		{Name: "10/s", Rate: 10, Start: 10 * time.Second, End: 11 * time.Second},
		{Name: "20/s", Rate: 20, Start: 11 * time.Second, End: 12 * time.Second},
		{Name: "0.000001/s", Rate: 1e-6, Start: 12 * time.Second, End: 13 * time.Second},
		{Name: "2.5/s", Rate: 2.5, Start: 13 * time.Second, End: Never},
	}
	assert.Same(t, s.Steps(), want)
	for _, d := range []struct {
		n    uint64
		want time.Duration
	}{
		{0, 0},
		{9999, 9999 * time.Millisecond},
		{10_000, 10 * time.Second},
		{10_010, 11 * time.Second},
		{10_030, 12 * time.Second},
		{10_031, 13 * time.Second},
		{10_036, 15 * time.Second},
	} {
		assert.Equal(t, s.Due(d.n), d.want, "Due(%d)", d.n)
	}
	assert.Equal(t, s.Count(15*time.Second+1), 10_037, "Count")
	assert.Equal(t, s.Rate(0), 1000, "Rate at the start")
	assert.Equal(t, s.Rate(11500*time.Millisecond), 20, "Rate")
	assert.Equal(t, s.End(), Never, "End")
}

func TestJoinedNeedsEnds(t *testing.T) {
	defer func() { assert.True(t, recover() != nil, "no panic") }()
	Joined(Constant(1), Constant(2))
}

func TestJoinedOfShort(t *testing.T) {
	s := Joined(Ramp(0, 10, time.Second), Until(Burst(5, time.Second), 2*time.Second))
	assert.Equal(t, s.Count(Never), 15, "events")
	assert.Equal(t, s.Due(15), Never, "when an event after the end is due")
	assert.Equal(t, s.End(), 3*time.Second, "End")
	assert.Equal(t, s.Rate(time.Hour), 0, "Rate after the end")
}

// drawSchedule draws any schedule that ends after a few hours at most.
func drawSchedule(t *rapid.T, label string) Schedule {
	rate := func() float64 { return min(drawRate(t, label+" rate"), 1e7) }
	span := func() time.Duration {
		return time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Hour)).Draw(t, label+" span"))
	}
	switch rapid.IntRange(0, 5).Draw(t, label) {
	case 0:
		return Until(Constant(rate()), span())
	case 1:
		return Ramp(rate(), rate(), span())
	case 2:
		return Steps([]Step{{Rate: rate(), End: span()}, {Rate: rate(), End: span()}})
	case 3:
		r := rate()
		return Until(Sine(r, r/2, time.Minute), span())
	case 4:
		return Until(Burst(rapid.Uint64Range(1, 100).Draw(t, label+" n"), span()), span())
	default:
		return Until(Poisson(min(rate(), 1e4), rapid.Uint64().Draw(t, label+" seed")), span())
	}
}

func TestCombinationProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule(Joined(drawSchedule(t, "first"), drawSchedule(t, "second"), drawSchedule(t, "third")))
		checkSchedule(t, s, Never, nil, 0)
		end := time.Duration(rapid.Int64Range(1, int64(s.End())).Draw(t, "end"))
		u := Until(s, end)
		checkSchedule(t, u, Never, nil, 0)
		if u.Count(Never) != s.Count(end) {
			t.Fatalf("%d events until %v, want %d", u.Count(Never), end, s.Count(end))
		}
	})
}

func TestStepsAreKept(t *testing.T) {
	s := Steps([]Step{{Rate: 10, End: time.Second}, {Rate: 20, End: time.Second}, {Rate: 30, End: time.Second}})
	want := []Step{
		{Name: "10/s", Rate: 10, Start: 0, End: time.Second},
		{Name: "20/s", Rate: 20, Start: time.Second, End: 1500 * time.Millisecond},
	}
	st, ok := Until(s, 1500*time.Millisecond).(Stepped)
	assert.Must(t, ok, "the steps are lost")
	assert.Same(t, st.Steps(), want)
	_, ok = Until(Constant(1), time.Second).(Stepped)
	assert.True(t, !ok, "a constant rate has steps")
}

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
			v := squares / n
			assert.True(t, math.Abs(v-tt.variance) <= 4*math.Sqrt((2*tt.variance*tt.variance+tt.variance)/n), "variance %v, want %v", v, tt.variance)
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
		assert.Equal(t, Constant(tt.rate).Due(tt.n), tt.want, "%s: Constant(%v).Due(%d)", tt.name, tt.rate, tt.n)
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
		num, den := fraction(tt.rate)
		assert.True(t, num == tt.num && den == tt.den, "%s: fraction(%v) = %d/%d, want %d/%d", tt.name, tt.rate, num, den, tt.num, tt.den)
	}
}

func TestFractionIsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := math.Exp(rapid.Float64Range(math.Log(MinRate), math.Log(MaxRate)).Draw(t, "ln rate"))
		num, den := fraction(rate)
		got := float64(num) / float64(den) * 1e9
		assert.Must(t, !(math.Abs(got-rate) > 1.2e-10*min(rate, 1)+1e-15*rate), "fraction(%v) = %d/%d, which is %v/s", rate, num, den, got)
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

// checkSchedule checks at random positions within span that Due and Count never decrease and are exact inverses. If an integral
// is given, it also checks that the count in any window differs from it by at most one plus what the schedule may stray.
func checkSchedule(t *rapid.T, s Schedule, span time.Duration, integral func(time.Duration) float64, stray float64) {
	t.Helper()
	at := rapid.Int64Range(0, int64(min(span, s.End())))
	a := time.Duration(at.Draw(t, "a"))
	b := time.Duration(at.Draw(t, "b"))
	if a > b {
		a, b = b, a
	}
	ca, cb := s.Count(a), s.Count(b)
	assert.Must(t, ca <= cb, "Count(%d) = %d, but Count(%d) = %d", a, ca, b, cb)
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
