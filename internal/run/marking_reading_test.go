package run

import (
	"testing"
	"testing/synctest"
	"time"

	"carronade/load"
	"carronade/test/testkit/assert"
)

// TestEmptyLog: a run that reads has no blackout while the system says that its log is empty, and has one
// while the system says nothing.
func TestEmptyLog(t *testing.T) {
	const at = 20 * time.Second
	for _, tt := range []struct {
		name     string
		until    time.Duration // the end of the time without a connection, which begins at at
		blackout float64       // s
		ok       bool          // the limit holds
	}{
		{"it answers", at, 0, true},
		{"it is silent for 5 s", 25 * time.Second, 5, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &fakeKind{says: 500 * time.Millisecond, lostFrom: at, lostUntil: tt.until}
				d, err := Execute(t.Context(), Job{
					Portable: true, Workload: resolve(t, k, "op=consume", "for=1m", "idle-timeout=1h", "slo=outage<3s"), Marks: markAt(t, at),
				})
				assert.OK(t, err)
				assert.Must(t, len(d.Faults.Scores) == 1, "%d scores, want 1", len(d.Faults.Scores))
				b := d.Faults.Scores[0].Whole.Blackout
				assert.True(t, b != nil && !b.More && b.S == tt.blackout, "the blackout is %+v, want %v s", b, tt.blackout)
				assert.True(t, len(d.Checks) == 1 && d.Checks[0].OK == tt.ok,
					"the checks are %+v, want one that holds: %v", d.Checks, tt.ok)
				<-k.session.ended
			})
		})
	}
}

// TestNotBegun: a command or fault of the run that is still to come does not explain that nothing arrives.
func TestNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &fakeKind{feed: 10 * time.Millisecond, lostFrom: 20 * time.Second, lostUntil: time.Hour}
		d, err := Execute(t.Context(), Job{Portable: true, Workload: resolve(t, k, "op=consume", "for=5m", "at=200s", "exec=true")})
		assert.OK(t, err)
		assert.True(t, d.Stopped == load.ByIdle && d.Totals.ElapsedS <= 21,
			"ended by %s after %v s, want %s after 20 s", d.Stopped, d.Totals.ElapsedS, load.ByIdle)
		<-k.session.ended
	})
}
