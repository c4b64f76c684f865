package fault_test

import (
	"testing"
	"time"

	"carronade/internal/verdict/fault"
	"carronade/test/testkit/assert"
)

// A reading is a run that only reads, as a script: each lane has events at a distance while it is not
// silent, and otherwise the system says twice a second that there are none.
type reading struct {
	every  []time.Duration // between the events of a lane; 0: it has none
	mute   []bool          // nothing is known of when a lane is empty
	stalls map[int][]span  // by lane; -1: all lanes
	marks  []fault.Mark
	length time.Duration
	lanes  int // 0: all are one
}

const patience = 500 * time.Millisecond

func (x *reading) scores(t *testing.T) []fault.Score {
	t.Helper()
	s := server{stalls: x.stalls}
	rec := fault.NewRecorder(100*time.Millisecond, 2, max(1, x.lanes), func(l int32) int { return int(l) })
	for _, m := range x.marks {
		rec.Mark(m) // what is around it is kept
	}
	for lane, every := range x.every {
		to := min(lane, max(0, x.lanes-1))
		step := every
		if every == 0 {
			step = patience
		}
		owed := 0
		for at := step; at < x.length; at += step {
			until := s.stalled(lane, at)
			if until > 0 {
				if owed++; at+step < until {
					continue
				}
				if at = until; at >= x.length {
					break
				}
			}
			switch {
			case every > 0:
				rec.Arrived(to, at, int32(1+owed))
			case len(x.mute) == 0 || !x.mute[lane]:
				rec.Empty(to, at)
			}
			owed = 0
			at = at.Truncate(step)
		}
	}
	in := fault.Input{
		Marks: rec.Marks(), Window: rec.Window, Errors: rec.Errors, End: x.length, Limit: 100 * time.Millisecond, Budget: 0.01,
		Reading: true, Patience: patience,
	}
	for range x.lanes {
		in.Lanes = append(in.Lanes, "p")
	}
	return fault.Scores(in)
}

// TestReading: the score of a run that only reads.
func TestReading(t *testing.T) {
	const (
		at = 30*second + 30*time.Millisecond
		ms = time.Millisecond
	)
	short := func(t *testing.T, what string, got *fault.Time) {
		t.Helper()
		assert.True(t, got == nil || got.S <= 0.1, "%s has a blackout of %+v", what, got)
	}
	for _, tt := range []struct {
		name  string
		x     reading
		check func(t *testing.T, s []fault.Score)
	}{
		{
			"all lanes",
			reading{every: []time.Duration{10 * ms, 10 * ms}, lanes: 2, stalls: map[int][]span{-1: {{at, at + 2*second}}}, marks: []fault.Mark{faultAt(at), healAt(at + 2*second)}},
			func(t *testing.T, s []fault.Score) {
				for _, n := range append(s[0].Lanes, s[0].Whole) {
					wantTime(t, "blackout", n.Blackout, 2)
					wantTime(t, "first event", n.FirstAck, 2)
					if n.Floor == nil || *n.Floor > 0.01 {
						t.Errorf("floor %v, want 0", show(n.Floor))
					}
					assert.True(t, n.Noticed == nil && n.Back == nil && n.Drained == nil && n.LostEventS == nil && n.Predicted == nil,
						"a run that only reads has no such times: %+v", n)
				}
				wantTime(t, "heal: first event", s[1].Whole.FirstAck, 0)
			},
		},
		{
			"one lane",
			reading{every: []time.Duration{10 * ms, 10 * ms, 10 * ms}, lanes: 3, stalls: map[int][]span{1: {{at, at + 3*second}}}, marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				assert.Must(t, s[0].Worst == 1, "the worst lane is %d, want 1", s[0].Worst)
				wantTime(t, "blackout", s[0].Lanes[1].Blackout, 3)
				wantTime(t, "first event", s[0].Lanes[1].FirstAck, 3)
				short(t, "another lane", s[0].Lanes[0].Blackout)
				short(t, "the whole", s[0].Whole.Blackout)
				wantNumber(t, "floor", s[0].Whole.Floor, 2.0/3)
			},
		},
		{
			// Nothing is to be read from the second lane: it has no blackout, and does not answer for the first.
			"an empty lane",
			reading{every: []time.Duration{10 * ms, 0}, lanes: 2, stalls: map[int][]span{0: {{at, at + 2*second}}}, marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				wantTime(t, "blackout", s[0].Lanes[0].Blackout, 2)
				wantTime(t, "blackout of the whole", s[0].Whole.Blackout, 2)
				wantTime(t, "blackout of the empty lane", s[0].Lanes[1].Blackout, 0)
			},
		},
		{
			"an empty lane is silent",
			reading{every: []time.Duration{10 * ms, 0}, lanes: 2, stalls: map[int][]span{-1: {{at, at + 2*second}}}, marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				wantTime(t, "blackout of the empty lane", s[0].Lanes[1].Blackout, 2)
				wantTime(t, "blackout", s[0].Lanes[0].Blackout, 2)
				wantTime(t, "blackout of the whole", s[0].Whole.Blackout, 2)
			},
		},
		{
			"only an empty lane is silent",
			reading{every: []time.Duration{10 * ms, 0}, lanes: 2, stalls: map[int][]span{1: {{at, at + 2*second}}}, marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				wantTime(t, "blackout of the empty lane", s[0].Lanes[1].Blackout, 2)
				short(t, "the whole", s[0].Whole.Blackout)
			},
		},
		{
			"nothing is known of a lane",
			reading{every: []time.Duration{10 * ms, 0}, mute: []bool{false, true}, lanes: 2, marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				b := s[0].Lanes[1].Blackout
				assert.True(t, b == nil, "the lane has a blackout of %+v", b)
				short(t, "the whole", s[0].Whole.Blackout)
			},
		},
		{
			// What every run ends with is not cut off.
			"silent since less than a bin",
			reading{every: []time.Duration{10 * ms, 10 * ms}, lanes: 2, stalls: map[int][]span{-1: {{40*second - 55*ms, time.Hour}}}, marks: []fault.Mark{faultAt(at)}, length: 40 * second},
			func(t *testing.T, s []fault.Score) {
				for _, n := range append(s[0].Lanes, s[0].Whole) {
					assert.True(t, n.Blackout != nil && !n.Blackout.More, "a blackout of %+v", n.Blackout)
				}
			},
		},
		{
			"not over at the end",
			reading{every: []time.Duration{10 * ms}, stalls: map[int][]span{-1: {{at, time.Hour}}}, marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				b := s[0].Whole.Blackout
				assert.True(t, b != nil && b.More && b.S >= 29.8, "the blackout is %+v, want more than 29.97 s", b)
			},
		},
		{
			"flapping",
			reading{every: []time.Duration{10 * ms}, stalls: map[int][]span{-1: {{at, at + second}, {at + 2*second, at + 4*second}, {at + 5*second, at + 6*second}}}, marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				wantTime(t, "blackout", s[0].Whole.Blackout, 2)
				wantTime(t, "first event", s[0].Whole.FirstAck, 4)
			},
		},
		{
			"two faults",
			reading{every: []time.Duration{10 * ms}, stalls: map[int][]span{-1: {{at, at + second}, {at + 5*second, at + 7*second}}}, marks: []fault.Mark{faultAt(at), healAt(at + second), faultAt(at + 5*second)}},
			func(t *testing.T, s []fault.Score) {
				assert.Must(t, len(s) == 3, "%d scores, want 3", len(s))
				wantTime(t, "blackout", s[0].Whole.Blackout, 1)
				wantTime(t, "blackout of the second", s[2].Whole.Blackout, 2)
				assert.True(t, s[2].Whole.Floor != nil, "the second has no baseline: %+v", s[2].Baseline)
			},
		},
		{
			// The baseline of the second does not begin before the lane that the first silenced has events again.
			"two faults, and the first of one lane",
			reading{every: []time.Duration{10 * ms, 10 * ms}, lanes: 2, stalls: map[int][]span{1: {{at, at + 12*second}}}, marks: []fault.Mark{faultAt(at), faultAt(at + 25*second)}},
			func(t *testing.T, s []fault.Score) {
				b := s[1].Baseline
				wantNumber(t, "rate before the second", &b.EventsPerS, 200)
				want := (at + 12*second).Seconds()
				assert.True(t, b.FromS >= want && b.FromS <= want+0.2, "the baseline begins at %v s, want %v s", b.FromS, want)
			},
		},
		{
			"silent since an earlier fault",
			reading{every: []time.Duration{10 * ms, 10 * ms}, lanes: 2, stalls: map[int][]span{1: {{at, at + 20*second}}}, marks: []fault.Mark{faultAt(at), faultAt(at + 15*second)}},
			func(t *testing.T, s []fault.Score) {
				assert.Equal(t, s[1].Worst, 1, "the worst lane")
				wantTime(t, "blackout", s[1].Lanes[1].Blackout, 5)
				wantTime(t, "first event", s[1].Lanes[1].FirstAck, 5)
			},
		},
		{
			"silent since a fault of nine minutes ago",
			reading{every: []time.Duration{10 * ms, 10 * ms}, lanes: 2, length: 11 * time.Minute, stalls: map[int][]span{1: {{at, at + 9*time.Minute + 30*second}}}, marks: []fault.Mark{faultAt(at), faultAt(at + 9*time.Minute)}},
			func(t *testing.T, s []fault.Score) { wantTime(t, "blackout", s[1].Lanes[1].Blackout, 30) },
		},
		{
			// Its newest event came before the baseline began.
			"a lane with few events",
			reading{every: []time.Duration{10 * ms, 50 * second}, lanes: 2, length: 102 * second, marks: []fault.Mark{faultAt(95 * second)}},
			func(t *testing.T, s []fault.Score) {
				wantTime(t, "blackout", s[0].Lanes[1].Blackout, 5)
				wantTime(t, "first event", s[0].Lanes[1].FirstAck, 5)
			},
		},
		{
			"nothing to read",
			reading{every: []time.Duration{0}, marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				n := s[0].Whole
				assert.True(t, n.Blackout != nil && *n.Blackout == (fault.Time{}),
					"the blackout is %+v, want 0: the system answered", n.Blackout)
				if n.FirstAck != nil || n.Floor != nil {
					t.Errorf("the first event came after %+v, and the lowest rate is %v", n.FirstAck, show(n.Floor))
				}
			},
		},
		{
			// The system may still wait for events, so neither a blackout nor its absence was seen.
			"nothing to read, and no answer until the end",
			reading{every: []time.Duration{0}, marks: []fault.Mark{faultAt(60*second - patience + 100*ms)}},
			func(t *testing.T, s []fault.Score) {
				b := s[0].Whole.Blackout
				assert.True(t, b == nil, "the blackout is %+v", b)
			},
		},
		{
			"too early for a baseline",
			reading{every: []time.Duration{10 * ms}, stalls: map[int][]span{-1: {{2 * second, 4 * second}}}, marks: []fault.Mark{faultAt(2 * second)}},
			func(t *testing.T, s []fault.Score) {
				wantTime(t, "blackout", s[0].Whole.Blackout, 2)
				if s[0].Whole.Floor != nil || s[0].Baseline.Why == "" {
					t.Errorf("got a floor of %v", show(s[0].Whole.Floor))
				}
			},
		},
		{
			"long after",
			reading{every: []time.Duration{10 * ms}, length: 3 * time.Minute, stalls: map[int][]span{-1: {{120 * second, 122 * second}}}, marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				short(t, "the whole", s[0].Whole.Blackout)
				wantTime(t, "later", s[0].Later, 2)
				assert.Equal(t, s[0].ObservedS, 60, "seconds observed")
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.x.length == 0 {
				tt.x.length = 60 * second
			}
			tt.check(t, tt.x.scores(t))
		})
	}
}
