//go:build unix

package host

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// The errors of signals.
var (
	ErrNotPermitted = errors.New("no permission to signal it")
	ErrNoProcess    = errors.New("no such process")
)

// Pause makes a process stand still until Continue (SIGSTOP).
func Pause(pid int) error { return send(pid, syscall.SIGSTOP) }

// Continue lets a process go on after Pause (SIGCONT).
func Continue(pid int) error { return send(pid, syscall.SIGCONT) }

// End ends a process at once (SIGKILL).
func End(pid int) error { return send(pid, syscall.SIGKILL) }

// MaySignal returns why this process may not signal another; nil if it may.
func MaySignal(pid int) error { return send(pid, 0) }

func send(pid int, sig syscall.Signal) error {
	switch {
	case pid <= 1:
		return fmt.Errorf("process %d: it is not one of a system under test", pid)
	case pid == os.Getpid(): // it could not continue itself
		return fmt.Errorf("process %d: it is this program", pid)
	}
	switch err := syscall.Kill(pid, sig); {
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("process %d: %w", pid, ErrNotPermitted)
	case errors.Is(err, syscall.ESRCH):
		return fmt.Errorf("process %d: %w", pid, ErrNoProcess)
	case err != nil:
		return fmt.Errorf("process %d: %w", pid, err)
	}
	return nil
}
