package run

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/system"
	"carronade/load"
)

// TestUnconnected: a run whose own fault left no connection ends when none comes back, with the score
// of the fault, as if its system had ended.
func TestUnconnected(t *testing.T) {
	const ever = 24 * time.Hour
	for _, tt := range []struct {
		name        string
		from, until time.Duration // the connection is lost
		set         []string      // PID and OTHER are processes
		stopped     load.Reason
		least, most float64 // seconds of the measurement
		exit        int
	}{
		{"for good", 20 * time.Second, ever, []string{"fault=20s:kill=pid:PID"}, load.ByLoss, 80, 83, system.ExitUntrusted},
		{"for good, with a limit", 20 * time.Second, ever, []string{"fault=20s:kill=pid:PID", "slo=outage<30s"}, load.ByLoss, 80, 83, system.ExitUntrusted},
		{"for good, in a round trip", 20 * time.Second, ever, []string{"op=roundtrip", "fault=20s:kill=pid:PID"}, load.ByLoss, 80, 83, system.ExitUntrusted},
		{"until it is started again", 20 * time.Second, 70 * time.Second, []string{"fault=20s:kill=pid:PID"}, load.ByTime, 300, 300, system.ExitOK},
		{"but it did not end anything", 20 * time.Second, ever, []string{"fault=20s:stop=pid:PID,10s"}, load.ByTime, 300, 300, system.ExitOK},
		{"at the end of the measurement", 245 * time.Second, ever, []string{"fault=245s:kill=pid:PID"}, load.ByTime, 300, 300, system.ExitOK},
		{"until a later fault is over", 20 * time.Second, ever, []string{"fault=20s:kill=pid:PID", "fault=150s:stop=pid:OTHER,30s"}, load.ByLoss, 240, 243, system.ExitUntrusted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			named := strings.NewReplacer("PID", fmt.Sprint(sleeper(t)), "OTHER", fmt.Sprint(sleeper(t)))
			for i := range tt.set {
				tt.set[i] = named.Replace(tt.set[i])
			}
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{perBatch: 1, consumeDelay: time.Millisecond, lostFrom: tt.from, lostUntil: tt.until}
				d, err := Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, append(tt.set, "rate=100/s", "for=5m", "drain=10s")...)})
				if err != nil {
					t.Fatal(err)
				}
				if e := d.Totals.ElapsedS; d.Stopped != tt.stopped || e < tt.least || e > tt.most {
					t.Errorf("ended by %s after %v s, want %s after %v to %v", d.Stopped, e, tt.stopped, tt.least, tt.most)
				}
				if got, want := d.Partial, tt.stopped == load.ByLoss; got != want {
					t.Errorf("cut short: %t, want %t", got, want)
				}
				if code := d.ExitCode(); code != tt.exit {
					t.Errorf("exit %d, want %d: %+v; %+v; %q", code, tt.exit, d.Trust, d.Checks, d.Problems)
				}
				if len(d.Faults.Scores) == 0 {
					t.Fatal("the fault has no score")
				}
				black := d.Faults.Scores[0].Whole.Blackout
				if black == nil || black.More == (tt.until < ever) || black.S < 49 {
					t.Errorf("the blackout is %+v", black)
				}
			})
		})
	}
}
