//go:build !unix

package host

import (
	"errors"
	"os"
	"os/exec"
)

// DiesWithParent: see child_linux.go.
const DiesWithParent = false

func tie(*exec.Cmd) {}

// Apart does nothing: see child_unix.go.
func Apart(*exec.Cmd) {}

func terminate(p *os.Process) { _ = p.Kill() }

func interrupt(p *os.Process) { _ = p.Kill() }

func killGroup(p *os.Process, alive bool) {
	if alive {
		_ = p.Kill()
	}
}

// Signal ends a process.
func Signal(pid int, _ bool) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}

// DeathSignal is always empty on this system.
func DeathSignal(*os.ProcessState) string { return "" }

// KeepFromChildren makes an open file descriptor one that processes started from now on do
// not inherit. Here it always fails: processes do not inherit descriptors by number.
func KeepFromChildren(uintptr) error {
	return errors.New("this operating system has no inherited file descriptors")
}

// The errors of signals.
var (
	ErrNotPermitted = errors.New("no permission to signal it")
	ErrNoProcess    = errors.New("no such process")
)

var errNoSignals = errors.New("this system has no signals")

// Pause makes a process stand still, on Unix.
func Pause(int) error { return errNoSignals }

// Continue lets a process go on after Pause, on Unix.
func Continue(int) error { return errNoSignals }

// End ends a process at once, on Unix.
func End(int) error { return errNoSignals }

// MaySignal returns why this process may not signal another.
func MaySignal(int) error { return errNoSignals }

// TryLock always succeeds on this system: users must not let two programs use what it
// protects, such as one revision that both build.
func TryLock(*os.File, bool) (bool, error) { return true, nil }

// CloseLocked closes a file.
func CloseLocked(f *os.File) error { return f.Close() }

// OpenFiles returns how many files this process has open; that does not matter here.
func OpenFiles() int { return 0 }
