//go:build darwin || freebsd || netbsd || openbsd

package system

import (
	"runtime"
	"syscall"
	"time"
)

// process reads getrusage(2). It does not have the current resident size; the
// largest so far is used instead.
type process struct{}

func (*process) open() {}

func (*process) read() (cpu time.Duration, rss, high uint64) {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0, 0, 0
	}
	high = uint64(r.Maxrss)
	if runtime.GOOS != "darwin" {
		high <<= 10 // in KiB there, in bytes on macOS
	}
	return CPU(), high, high
}

// CPU is the processor time of the running process, user and system; 0 if it is not known.
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
	return uint64(r.Cur), uint64(r.Max)
}
