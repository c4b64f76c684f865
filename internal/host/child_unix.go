//go:build unix

package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func tie(cmd *exec.Cmd) {
	Apart(cmd)
	tieToParent(cmd.SysProcAttr)
}

// Apart gives a command that is not started yet a process group of its own, so that an interrupt at
// the terminal does not reach it.
func Apart(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

func terminate(p *os.Process) { _ = p.Signal(syscall.SIGTERM) }

func interrupt(p *os.Process) { _ = p.Signal(syscall.SIGINT) }

// killGroup kills the group of a leader. The leader's number stays the group's
// while a process is left in it. So if the leader was waited for and a process
// has its number, the group has ended and the number belongs to another
// process.
func killGroup(p *os.Process, alive bool) {
	if !alive && !errors.Is(syscall.Kill(p.Pid, 0), syscall.ESRCH) {
		return
	}
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
}

// Signal sends TERM or KILL to the process that has the number now. Tree.Signal
// cannot hit a wrong process; use it if possible.
func Signal(pid int, kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	_ = syscall.Kill(pid, sig)
}

// DeathSignal is the name of the signal that ended a process; "" if it exited.
func DeathSignal(s *os.ProcessState) string {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal().String()
	}
	return ""
}

// KeepFromChildren makes an open file descriptor one that processes started from now on do
// not inherit. It fails if the descriptor is not open.
func KeepFromChildren(fd uintptr) error {
	_, err := unix.FcntlInt(fd, unix.F_SETFD, unix.FD_CLOEXEC)
	return err
}

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

// watchContinued notes when a signal continues the program. Listening to it
// does not change its effect.
func watchContinued(now func() time.Duration) (last func() time.Duration, end func()) {
	var at atomic.Int64
	at.Store(-1)
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGCONT)
	go func() {
		for {
			select {
			case <-signals:
				at.Store(int64(now()))
			case <-ended:
				return
			}
		}
	}()
	return func() time.Duration { return time.Duration(at.Load()) }, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(ended)
	})
}
