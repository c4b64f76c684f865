package riemann

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is this process's CPU time, user and system.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
