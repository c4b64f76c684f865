//go:build !linux

package load

import "time"

// newPrecise has nothing better than the runtime's timers here.
func newPrecise(start time.Time) waiter { return newTimed(start) }
