//go:build !linux

package system

import "time"

// asleep is unknown on this system.
func asleep() time.Duration { return 0 }
