package load

import (
	"cmp"
	"math"
	"slices"
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
		if s.Count(Never) > 1 {
			n := rapid.Uint64Range(1, s.Count(Never)-1).Draw(t, "limit")
			l := Limit(s, n)
			checkSchedule(t, l, Never, nil, 0)
			if got := l.Count(l.End()); got != n {
				t.Fatalf("limited to %d events, but %d are due until its end", n, got)
			}
			if got := l.Due(n); got != Never {
				t.Fatalf("limited to %d events, but event %d is due at %v", n, n, got)
			}
		}
		end := time.Duration(rapid.Int64Range(1, int64(s.End())).Draw(t, "end"))
		u := Until(s, end)
		checkSchedule(t, u, Never, nil, 0)
		if u.Count(Never) != s.Count(end) {
			t.Fatalf("%d events until %v, want %d", u.Count(Never), end, s.Count(end))
		}
	})
}

func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		name string
		s    Schedule
		n    uint64
		want time.Duration
	}{
		{"constant", Constant(700_000), 7_000_000, 10 * time.Second},
		{"bursts", Burst(1000, time.Second), 2000, 2 * time.Second},
		{"part of a burst", Burst(1000, time.Second), 500, 1},
		{"more than there are", Ramp(10, 10, time.Second), 1000, time.Second},
		{"as many as there are", Ramp(10, 10, time.Second), 10, time.Second},
		{"the next is never due", Constant(MinRate), 9_223_372_037, Never},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, Limit(tt.s, tt.n).End(), tt.want, "End") })
	}
}

func TestStepsAreKept(t *testing.T) {
	s := Steps([]Step{{Rate: 10, End: time.Second}, {Rate: 20, End: time.Second}, {Rate: 30, End: time.Second}})
	want := []Step{
		{Name: "10/s", Rate: 10, Start: 0, End: time.Second},
		{Name: "20/s", Rate: 20, Start: time.Second, End: 1500 * time.Millisecond},
	}
	for name, got := range map[string]Schedule{"until": Until(s, 1500*time.Millisecond), "limit": Limit(s, 20)} {
		st, ok := got.(Stepped)
		if !ok {
			t.Errorf("%s: the steps are lost", name)
			continue
		}
		assert.Same(t, st.Steps(), want, "%s", name)
	}
	_, ok := Until(Constant(1), time.Second).(Stepped)
	assert.True(t, !ok, "a constant rate has steps")
}
