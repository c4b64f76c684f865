//go:build !linux

package fault

import "time"

func nap(time.Duration) {}
