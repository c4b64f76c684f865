//go:build !linux

package host

import "time"

// asleep is unknown on this system.
func asleep() time.Duration { return 0 }
