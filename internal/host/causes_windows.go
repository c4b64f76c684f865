package host

import "time"

// watchContinued does nothing: Windows has no such signal.
func watchContinued(func() time.Duration) (last func() time.Duration, end func()) {
	return func() time.Duration { return -1 }, func() {}
}
