package run

import (
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit/assert"
)

// TestExplains: a fault that reached the system explains an end for a while after it.
func TestExplains(t *testing.T) {
	const killed, again = 10 * time.Second, 100 * time.Second
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		at := func(d time.Duration) time.Time { return began.Add(d) }
		sleep := func(until time.Duration) { time.Sleep(time.Until(at(until))) }
		var b breakage
		sleep(5 * time.Second)
		b.kill(func() bool { return false }) // it reached nothing
		sleep(killed)
		b.kill(func() bool { return true })
		sleep(again)
		b.kill(func() bool { return true })
		for _, tt := range []struct {
			name string
			at   time.Duration
			want bool
		}{
			{"after a kill that reached nothing", 6 * time.Second, false},
			{"before the kill", killed - 1, false},
			{"at the kill", killed, true},
			{"soon after it", killed + afterFault, true},
			{"long after it", killed + afterFault + 1, false},
			{"after the second", again + time.Second, true},
		} {
			assert.Equal(t, b.explains(at(tt.at)), tt.want, "%s", tt.name)
		}
	})
}
