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
