//go:build !linux

package load

import "time"

// precisely has no effect here.
func precisely() {}

// newPrecise has nothing better than the runtime's timers here.
func newPrecise(start time.Time) waiter { return newTimed(start) }
