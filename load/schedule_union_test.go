package load

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"pgregory.net/rapid"
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
