package load

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAnswersByWhenTheyCame: the rate of answers is of those within the hold,
// whatever they were; what comes in the drain is the drain's.
func TestAnswersByWhenTheyCame(t *testing.T) {
	const service = 300 * time.Millisecond
	for _, tt := range []struct {
		name    string
		outcome Outcome
		hold    uint64 // shots
	}{
		{"taken", Outcome{}, 12},
		{"refused", Outcome{Failed: 2, Class: Rejected, Text: "no"}, 12},
		{"an answer that says nothing certain", Outcome{Unknown: 2, Class: Timeout, Text: "504", Status: 504}, 12},
		{"none", Outcome{Unknown: 2, Class: Timeout, Text: "late"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plan := Plan{Callers: 4, EventsPerShot: 2, Hold: Limits{Time: time.Second}, Drain: time.Minute}
				r := fireTest(t, plan, newFake(Single(), 1, func(_ int, _ Shot, at time.Duration) (time.Duration, Outcome) {
					return at + service, tt.outcome
				}))
				drained := min(tt.hold, 4) // the fourth of each caller
				if r.Hold.Shots != 16 || r.Hold.Answers != tt.hold || r.Drain.Answers != drained {
					t.Errorf("%d shots, answered %d in the hold and %d in the drain; want 16, %d, %d", r.Hold.Shots, r.Hold.Answers, r.Drain.Answers, tt.hold, drained)
				}
				if got := r.Hold.AnswersPerSecond(); got != float64(tt.hold) {
					t.Errorf("%v answers a second, want %d", got, tt.hold)
				}
			})
		})
	}
}

// TestNeverSentIsNotAnswered: what was never written failed, and nobody said so.
func TestNeverSentIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(Single(), 1, constantly(5*time.Millisecond))
		u := &unwritten{f, &unwrittenLane{f.lanes[0], 1}}
		r, err := Fire(t.Context(), Plan{Schedule: Constant(10), EventsPerShot: 1, Hold: Limits{Time: time.Second}, Portable: true}, u)
		if err != nil {
			t.Fatal(err)
		}
		if r.Hold.Failed != 10 || r.Hold.Answers != 0 || r.Drain.Answers != 0 {
			t.Errorf("%d failed, %d and %d answers; want 10, none", r.Hold.Failed, r.Hold.Answers, r.Drain.Answers)
		}
	})
}
