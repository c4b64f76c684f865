package run

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/load"
	"carronade/test/testkit/assert"
)

// TestWaitedAtEnd: a run that continued after it had read everything says so. That wait is not a stall of
// the system while the system says that there are no events.
func TestWaitedAtEnd(t *testing.T) {
	const text = "the end of the logs was reached at 2 s, and nothing came in the 6 s after it: the rate includes that wait (without it 100/s)"
	for _, tt := range []struct {
		name    string
		k       fakeKind
		warning string
		stalls  uint64
		longest float64 // s
		share   float64
	}{
		{"it has everything", fakeKind{feedFor: 2 * time.Second, says: 500 * time.Millisecond}, text, 0, 0, 0},
		{"then the system is silent", fakeKind{feedFor: 2 * time.Second, says: 500 * time.Millisecond, lostFrom: 5 * time.Second, lostUntil: time.Hour}, text, 1, 3, 0.375},
		{"the system says nothing", fakeKind{feedFor: 2 * time.Second}, "", 1, 6, 0.75},
		{"just before its end", fakeKind{feedFor: 7500 * time.Millisecond, says: 500 * time.Millisecond}, "", 0, 0, 0},
		{"there is more", fakeKind{says: 500 * time.Millisecond}, "", 0, 0.01, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.k.feed = 10 * time.Millisecond
				d, err := Execute(t.Context(), Job{Portable: true, Workload: resolve(t, &tt.k, "op=consume", "for=8s", "idle-timeout=1h")})
				assert.OK(t, err)
				got := ""
				for _, w := range d.Warnings {
					if strings.Contains(w, "end of the logs") {
						got = strings.ReplaceAll(w, "\u00a0", " ")
					}
				}
				assert.Equal(t, got, tt.warning, "the warning")
				if s := &d.Stall; d.Stopped != load.ByTime || s.Count != tt.stalls || math.Abs(s.LongestS-tt.longest) > 0.02 || math.Abs(s.Share-tt.share) > 0.01 || len(s.Spans) != int(s.Count) {
					t.Errorf("ended by %s, stalls %+v; want %d, the longest %v s, %v of the time", d.Stopped, *s, tt.stalls, tt.longest, tt.share)
				}
				<-tt.k.session.ended
			})
		})
	}
}
