package run

import (
	"testing"
	"testing/synctest"
	"time"

	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// TestEndsWithItsSystem: a run whose system has died ends at once. It waits for
// the last answers for well below a second, even if none come any more.
func TestEndsWithItsSystem(t *testing.T) {
	for _, tt := range []struct {
		name string
		mute bool
		most time.Duration
	}{
		{"all is answered", false, time.Millisecond},
		{"nothing is answered", true, lastAnswers},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{noAnswers: tt.mute}
				s := assert.Value(m.Open(t.Context(), protocol.Spec{}))(t)
				r, err := load.New(load.Plan{Schedule: load.Constant(1000), Measurement: load.Limits{Time: time.Hour}, Drain: time.Hour, Portable: true}, s.Target())
				assert.OK(t, err)
				died := make(chan struct{})
				var at time.Time
				time.AfterFunc(10*time.Second, func() { at = time.Now(); close(died) })
				r.Start()
				(&execution{}).await(t.Context(), r, died)
				res, err := r.Wait()
				assert.Must(t, err == nil || tt.mute, "%v", err) // it completes nothing, which is an error
				if took := time.Since(at); took > tt.most || took > time.Second/2 {
					t.Errorf("it ended %v after its system, want %v at most", took, tt.most)
				}
				assert.Equal(t, res.Stopped, load.BySystem, "stopped by")
			})
		})
	}
}
