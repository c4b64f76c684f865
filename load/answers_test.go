package load

import (
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit/assert"
)

// TestAnswersByWhenTheyCame: the rate of answers counts those that arrived within the
// measurement, whatever they say; those that arrive in the drain count for the drain.
func TestAnswersByWhenTheyCame(t *testing.T) {
	const service = 300 * time.Millisecond
	for _, tt := range []struct {
		name        string
		outcome     Outcome
		measurement uint64 // batches
	}{
		{"taken", Outcome{}, 12},
		{"refused", Outcome{Failed: 2, Class: Rejected, Text: "no"}, 12},
		{"an answer that decides nothing", Outcome{Unknown: 2, Class: Timeout, Text: "504", Status: 504}, 12},
		{"none", Outcome{Unknown: 2, Class: Timeout, Text: "late"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plan := Plan{Concurrency: 4, BatchEvents: 2, Measurement: Limits{Time: time.Second}, Drain: time.Minute}
				r := fireTest(t, plan, newFake(Single(), 1, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					return at + service, tt.outcome
				}))
				drained := min(tt.measurement, 4) // the fourth of each caller
				assert.True(t, r.Measurement.Batches == 16 && r.Measurement.Answers == tt.measurement && r.Drain.Answers == drained,
					"%d batches, answered %d in the measurement and %d in the drain; want 16, %d, %d",
					r.Measurement.Batches, r.Measurement.Answers, r.Drain.Answers, tt.measurement, drained)
				assert.Equal(t, r.Measurement.AnswersPerSecond(), float64(tt.measurement), "answers a second")
			})
		})
	}
}

// TestSendsByWhenTheyLeft: the rate of what was sent counts what left within the measurement. What waits for the
// in-flight limit is sent in the drain, and counts there.
func TestSendsByWhenTheyLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := Plan{Schedule: Constant(100), MaxInFlight: 1, BatchEvents: 1, Measurement: Limits{Time: time.Second}, Drain: time.Minute}
		r := fireTest(t, plan, newFake(Single(), 1, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
			return at + 99*time.Millisecond, Outcome{}
		}))
		m := &r.Measurement
		events, _, _ := m.SentPerSecond()
		assert.True(t, m.Sent == 100 && m.Sends == 11 && events == 11 && r.Drain.Sends == 89,
			"%d sent, %d of them in the measurement (%v/s) and %d in the drain; want 100, 11 and 89", m.Sent, m.Sends, events, r.Drain.Sends)
	})
}

// TestLastInterval: the series lasts as long as the measurement, also if nothing is due at its end: the rate of the
// last interval is not that of the moments until its last event.
func TestLastInterval(t *testing.T) {
	for _, length := range []time.Duration{3 * time.Second, 3300 * time.Millisecond, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			rate := 3 / length.Seconds()
			plan := Plan{Schedule: Constant(rate), BatchEvents: 1, Interval: time.Second, Measurement: Limits{Time: length}}
			r := fireTest(t, plan, newFake(Single(), 1, constantly(time.Millisecond)))
			within := time.Duration(0)
			for i := range r.Intervals {
				iv := &r.Intervals[i]
				within += iv.Within
				assert.True(t, iv.EventsPerSecond() <= 1/min(1, iv.Within.Seconds()), "interval %d of %v: %v events/s in %v", i, length, iv.EventsPerSecond(), iv.Within)
			}
			last := &r.Intervals[len(r.Intervals)-1]
			assert.True(t, r.Measurement.Length() == length && within == length && last.End == length, "%v: the series has %v, up to %v", length, within, last.End)
		})
	}
}

// TestUnknownIsNotRefused: what may have been written before its connection was lost was not refused, whatever
// the lane says.
func TestUnknownIsNotRefused(t *testing.T) {
	for _, tt := range []struct {
		outcome Outcome
		class   string
	}{
		{Outcome{Failed: 2, Class: Refused, Text: "no connection"}, "refused"},
		{Outcome{Unknown: 2, Class: Refused, Text: "connection lost"}, "disconnected"},
		{Outcome{Failed: 1, Unknown: 1, Class: Refused, Text: "connection lost"}, "disconnected"},
		{Outcome{Unknown: 2, Class: Timeout, Text: "late"}, "timeout"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var seen string
			plan := Plan{Concurrency: 1, BatchEvents: 2, Measurement: Limits{Events: 4}, Observe: func(all []Outcome) { seen = all[0].Class.String() }}
			r := fireTest(t, plan, newFake(Single(), 1, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
				return at + time.Millisecond, tt.outcome
			}))
			assert.True(t, len(r.Classes) == 1 && r.Classes[tt.class] == 4 && seen == tt.class,
				"%+v: classes %v, and an observer saw %s; want 4 %s", tt.outcome, r.Classes, seen, tt.class)
		})
	}
}

// TestNeverSentIsNotAnswered: events that were never written failed without an answer.
func TestNeverSentIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(Single(), 1, constantly(5*time.Millisecond))
		u := &unwritten{f, &unwrittenLane{f.lanes[0], 1}}
		r, err := Fire(t.Context(), Plan{Schedule: Constant(10), BatchEvents: 1, Measurement: Limits{Time: time.Second}, Portable: true}, u)
		assert.OK(t, err)
		assert.True(t, r.Measurement.Failed == 10 && r.Measurement.Answers == 0 && r.Drain.Answers == 0,
			"%d failed, %d and %d answers; want 10, none", r.Measurement.Failed, r.Measurement.Answers, r.Drain.Answers)
	})
}
