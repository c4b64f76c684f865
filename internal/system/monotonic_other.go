//go:build !linux

package system

import "time"

// MonotonicOf is not known here.
func MonotonicOf(time.Time) (ns int64, ok bool) { return 0, false }
