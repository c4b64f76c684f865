//go:build darwin || freebsd || netbsd || openbsd

package host

import (
	"errors"
	"os"
	"runtime"
	"sync"
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

var self = sync.OnceValue(func() Identity {
	host, _ := os.Hostname()
	return Identity{Host: host, PID: os.Getpid()}
})

// startOf reports whether a process exists; its start is not read.
func startOf(pid int) (string, bool) {
	err := syscall.Kill(pid, 0)
	return "", err == nil || errors.Is(err, syscall.EPERM)
}
