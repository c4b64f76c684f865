package load

import (
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"pgregory.net/rapid"
)

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
