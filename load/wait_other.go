//go:build !linux

package load

import "time"

// tuneThread has no effect here.
func tuneThread() {}

// newPreciseWaiter returns a waiter by the runtime's timers: no more precise one exists
// here.
func newPreciseWaiter(start time.Time) waiter { return newTimerWaiter(start) }
