package host

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// MonotonicOf returns the machine's monotonic clock (CLOCK_MONOTONIC) at t, in
// nanoseconds. It is the same for all processes of a machine, so the records of
// two of them can be joined. Go's own monotonic readings are of that clock, but
// count from the start of each process. ok is false for a t without such a
// reading, and on systems where the clock cannot be read.
func MonotonicOf(t time.Time) (ns int64, ok bool) {
	if t.Round(0) == t { //nolint:staticcheck // unlike Equal, this reports whether it has a monotonic reading
		return 0, false
	}
	// The two clocks are read one after the other, and this thread may lose its
	// processor in between: the closest of several pairs is exact to some 50
	// ns.
	closest := int64(math.MaxInt64)
	for range 8 {
		var before, after unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &before) != nil {
			return 0, false
		}
		now := time.Now()
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &after) != nil {
			return 0, false
		}
		if gap := after.Nano() - before.Nano(); gap < closest {
			closest, ns = gap, before.Nano()+gap/2-int64(now.Sub(t))
		}
	}
	return ns, true
}
