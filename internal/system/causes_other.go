//go:build !linux

package system

import "time"

// asleep is not known here.
func asleep() time.Duration { return 0 }
