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
	}{
		{"one stripe", Plan{MaxInFlight: 1000}, 1, time.Millisecond, Interrupted, measure.Counts{Offered: 996, Sent: 996, Acked: 996}},
		{"stripes that gather each for itself", Plan{MaxInFlight: 1000}, 7, time.Millisecond, Interrupted, measure.Counts{Offered: 996, Sent: 996, Acked: 996}},
		{"held back", Plan{}, 1, time.Second, Interrupted, measure.Counts{Offered: 996, Sent: 11, Acked: 11, Unsent: 985}},
		{"ended by a limit", Plan{MaxInFlight: 1000}, 1, time.Millisecond, ByFailures, measure.Counts{Offered: 996, Sent: 990, Acked: 990, Unsent: 6}},
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
				if h.Censored.Count() != h.Unsent || h.Gather.Max() > 10*time.Millisecond {
					t.Errorf("%d ages of %d unsent events, gathered for at most %v", h.Censored.Count(), h.Unsent, h.Gather.Max())
				}
			})
		})
	}
}
