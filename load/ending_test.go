package load

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/measure"
)

// TestStopFiresWhatGathers: events that linger when somebody ends the run are
// fired and answered; those that the bound holds back are not.
func TestStopFiresWhatGathers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		plan    Plan
		stripes int
		service time.Duration
		why     Reason
		want    measure.Counts
		whole   bool
	}{
		{"one stripe", Plan{MaxInFlight: 1000}, 1, time.Millisecond, Interrupted, measure.Counts{Offered: 996, Sent: 996, Acked: 996}, true},
		{"stripes that gather each for itself", Plan{MaxInFlight: 1000}, 7, time.Millisecond, Interrupted, measure.Counts{Offered: 996, Sent: 996, Acked: 996}, true},
		{"held back", Plan{}, 1, time.Second, Interrupted, measure.Counts{Offered: 996, Sent: 11, Acked: 11, Unsent: 985}, true},
		{"ended by a limit", Plan{MaxInFlight: 1000}, 1, time.Millisecond, ByFailures, measure.Counts{Offered: 996, Sent: 990, Acked: 990, Unsent: 6}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := tt.plan
				p.Schedule, p.Linger, p.Portable, p.MaxInFlight = Constant(1000), 10*time.Millisecond, true, max(p.MaxInFlight, 1)
				r, err := New(p, newFake(RoundRobin(tt.stripes), 1, constantly(tt.service)))
				if err != nil {
					t.Fatal(err)
				}
				r.Start()
				time.Sleep(995*time.Millisecond + 500*time.Microsecond)
				r.Stop(tt.why)
				res, err := r.Wait()
				if err != nil {
					t.Fatal(err)
				}
				h := &res.Hold
				got := measure.Counts{Offered: h.Offered, Sent: h.Sent, Acked: h.Acked, Unsent: h.Unsent}
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
				if res.Whole != tt.whole {
					t.Errorf("whole: got %v", res.Whole)
				}
				if h.Censored.Count() != h.Unsent || h.Gather.Max() > 10*time.Millisecond {
					t.Errorf("%d ages of %d unsent events, gathered for at most %v", h.Censored.Count(), h.Unsent, h.Gather.Max())
				}
			})
		})
	}
}

// TestWhole: an interruption is the end of a run that has no other, and cuts one
// that has, or that had not begun to measure, or whose answers were not awaited.
func TestWhole(t *testing.T) {
	for _, tt := range []struct {
		name  string
		plan  Plan
		abort bool
		want  bool
	}{
		{name: "a rate", plan: Plan{Schedule: Constant(100)}, want: true},
		{name: "callers", plan: Plan{Callers: 2}, want: true},
		{name: "full speed", want: true},
		{name: "aborted", plan: Plan{Schedule: Constant(100)}, abort: true},
		{name: "in the warm-up", plan: Plan{Schedule: Constant(100), WarmupTime: 2 * time.Second}},
		{name: "a time", plan: Plan{Schedule: Constant(100), Hold: Limits{Time: time.Minute}}},
		{name: "a number", plan: Plan{Callers: 2, Hold: Limits{Events: 1e6}}},
		{name: "bytes", plan: Plan{Callers: 2, Hold: Limits{Bytes: 1 << 40}}},
		{name: "failures, of which there are none", plan: Plan{Callers: 2, Hold: Limits{Failures: 3}}, want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := tt.plan
				p.EventsPerShot, p.Portable = 1, true
				r, err := New(p, newFake(Single(), 1, constantly(50*time.Millisecond)))
				if err != nil {
					t.Fatal(err)
				}
				r.Start()
				time.Sleep(time.Second)
				r.Stop(Interrupted)
				if tt.abort {
					r.Abort()
				}
				res, err := r.Wait()
				if err != nil {
					t.Fatal(err)
				}
				if res.Whole != tt.want || res.Stopped != Interrupted {
					t.Errorf("whole: got %v, stopped by %q", res.Whole, res.Stopped)
				}
			})
		})
	}
}
