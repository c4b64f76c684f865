//go:build linux || darwin || freebsd || netbsd || openbsd

package host

import (
	"syscall"
	"time"
)

// CPU is the processor time of the running process, user and system; 0 if it is not known. It costs
// about a microsecond.
func CPU() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func openFiles() (now, most uint64) {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0, 0
	}
	return uint64(r.Cur), uint64(r.Max) //nolint:unconvert // signed on FreeBSD
}
