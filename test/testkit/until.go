package testkit

import (
	"context"
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

// Minute returns a context that ends with t, or after a minute: what a test waits for is done
// by then, also on a slow machine.
func Minute(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Wait receives from a channel: what says what comes, in the error after a minute.
func Wait[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("not so within a minute: %s", what)
		panic("unreachable")
	}
}
