//go:build !impair

package impair

import "time"

// Point does nothing.
func Point(int, time.Duration) {}

// Wall is by how much the wall clock was set: not at all.
func Wall(time.Duration) time.Duration { return 0 }
