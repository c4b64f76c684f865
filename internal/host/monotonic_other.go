//go:build !linux

package host

import "time"

// MonotonicOf is unknown on this system.
func MonotonicOf(time.Time) (ns int64, ok bool) { return 0, false }
