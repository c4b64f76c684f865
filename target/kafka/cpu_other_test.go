//go:build !linux

package kafka

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
