package testkit

import (
	"testing"
	"time"
)

// Until waits until something is so: what says it in the error, after a minute. It is for what nothing
// announces, such as another process's progress.
func Until(t testing.TB, what string, so func() bool) {
	t.Helper()
	tick, end := time.NewTicker(time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not so within a minute: %s", what)
		}
	}
}
