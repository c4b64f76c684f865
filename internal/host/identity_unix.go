//go:build darwin || freebsd || netbsd || openbsd

package host

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

var self = sync.OnceValue(func() Identity {
	host, _ := os.Hostname()
	return Identity{Host: host, PID: os.Getpid()}
})

// startOf reports whether a process exists; its start is not read.
func startOf(pid int) (string, bool) {
	err := syscall.Kill(pid, 0)
	return "", err == nil || errors.Is(err, syscall.EPERM)
}
