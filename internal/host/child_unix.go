//go:build unix

package host

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
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
