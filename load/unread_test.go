package load

import (
	"testing"
	"testing/synctest"
	"time"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

// TestStageUnread: what a pipeline sent and did not read, for whatever reason, has an age in the end-to-end times.
func TestStageUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &fakeFollower{takes: time.Millisecond, answer: func(o *Outcome) {
			if o.First%10 == 3 {
				o.Acked, o.Failed, o.Class, o.Text = 0, o.Events, Rejected, "deleted"
			}
		}, stuckAt: 90}
		plan := Plan{Schedule: Constant(1000), BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 100}}
		f := newFake(Single(), 1, constantly(0))
		f.unplaced = 5
		res, got := fireStage(t, plan, StagePlan{MaxInFlight: 1}, of, f)
		m := &res.Measurement
		unread := 100 - got.Acked // deleted, without a place, stuck, or waiting
		assert.Equal(t, unread, 23, "unread")
		assert.True(t, m.Unread == unread && m.UnreadAges.Count() == unread && m.EndToEnd.Count() == got.Acked,
			"%d unread, %d ages, %d end-to-end times; want 23 and 77", m.Unread, m.UnreadAges.Count(), m.EndToEnd.Count())
		v := measure.Percentiles(m.EndToEnd, m.UnreadAges, []float64{50, 99})
		assert.True(t, v[1].AtLeast && v[1].D >= time.Second, "p99 is %+v, want a lower bound of a second or more", v[1])
	})
}

// TestStageWaitsInFull: the waiting for reads takes the whole idle time from when everything was sent, although
// nothing has been read for a while.
func TestStageWaitsInFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &fakeFollower{takes: time.Millisecond, stuckAt: 1}
		plan := Plan{Schedule: Constant(10), BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Time: 10 * time.Second}}
		began := time.Now()
		fireStage(t, plan, StagePlan{MaxInFlight: 1}, of, newFake(Single(), 1, constantly(0)))
		// The idle time of fireStage is a second.
		assert.True(t, time.Since(began) >= 10900*time.Millisecond, "it waited until %v", time.Since(began))
	})
}

// TestUnsentOfARoundTrip: events that were due and never sent did not come back either.
func TestUnsentOfARoundTrip(t *testing.T) {
	for _, unanswered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			plan := Plan{
				Schedule: Constant(100), BatchEvents: 1, MaxInFlight: 1, Measurement: Limits{Time: time.Second}, Drain: time.Second,
				Portable: true, Returns: true, Unanswered: unanswered,
			}
			res := assert.Value(Fire(t.Context(), plan, newFake(Single(), 1, constantly(time.Hour))))(t)
			m := &res.Measurement
			assert.Equal(t, m.Censored.Count() == 100, !unanswered, "whether the unanswered event counts")
			assert.True(t, m.Unsent == 99 && m.UnreadAges.Count() == 99 && m.Unread == 0,
				"%d unsent, %d ages, %d unread, %d without an answer; want 99 of each but unread",
				m.Unsent, m.UnreadAges.Count(), m.Unread, m.Censored.Count())
		})
	}
}

// TestUnreadAge: an event that was not read is as old as from when it was due, or sent, if nothing was due. What
// was refused has no age, and without acks what was sent is unread.
func TestUnreadAge(t *testing.T) {
	for _, tt := range []struct {
		name       string
		o          Outcome
		unanswered bool
		unread     uint64
		ages       []time.Duration
	}{
		{"acked", Outcome{Batch: Batch{Events: 2, DueFirst: time.Second, DueLast: time.Second}, Acked: 2}, false, 2, []time.Duration{9 * time.Second, 9 * time.Second}},
		{"by its own due time", Outcome{Batch: Batch{Events: 2, DueFirst: 0, DueLast: 10 * time.Millisecond}, Acked: 2}, false, 2, []time.Duration{9990 * time.Millisecond, 10 * time.Second}},
		{"nothing was due", Outcome{Batch: Batch{Events: 1, DueFirst: -1, DueLast: -1}, Sent: 4 * time.Second, Acked: 1}, false, 1, []time.Duration{6 * time.Second}},
		{"refused", Outcome{Batch: Batch{Events: 1}, Failed: 1}, false, 0, nil},
		{"unknown", Outcome{Batch: Batch{Events: 1}, Unknown: 1}, false, 0, []time.Duration{10 * time.Second}},
		{"not acknowledged", Outcome{Batch: Batch{Events: 1}, Unknown: 1}, true, 1, []time.Duration{10 * time.Second}},
		{"in part", Outcome{Batch: Batch{Events: 4, DueFirst: 0, DueLast: 30 * time.Millisecond}, Acked: 1, Failed: 2, Unknown: 1}, false, 1, []time.Duration{9970 * time.Millisecond, 10 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m measure.Tally
			synctest.Test(t, func(t *testing.T) {
				plan := Plan{Schedule: Constant(100), BatchEvents: 1, Measurement: Limits{Time: time.Second}, Portable: true, Unanswered: tt.unanswered}
				var r *Run
				plan.Completed = func() { r.Unread(0, &tt.o, 10*time.Second) }
				r = assert.Value(New(plan, newFake(Single(), 1, constantly(0))))(t)
				r.Start()
				res := assert.Value(r.Wait())(t)
				m = res.Measurement
			})
			unread, ages := m.Unread, m.UnreadAges
			want := measure.NewHistogram()
			for _, a := range tt.ages {
				want.Record(a)
			}
			assert.True(t, unread == tt.unread && (ages.Count()+want.Count() == 0 || ages.Equal(want)), "%d unread, %d ages from %v to %v; want %d, %v", unread, ages.Count(), ages.Min(), ages.Max(), tt.unread, tt.ages)
		})
	}
}
