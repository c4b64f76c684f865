//go:build unix

package system

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

func tie(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	tieToParent(cmd.SysProcAttr)
}

func terminate(p *os.Process) { _ = p.Signal(syscall.SIGTERM) }

// killGroup ends a group whose number was its leader's. The number stays the
// group's while any is left in it, so when the leader was waited for and a
// process has its number, the group had ended and the number is another's.
func killGroup(p *os.Process, alive bool) {
	if !alive && !errors.Is(syscall.Kill(p.Pid, 0), syscall.ESRCH) {
		return
	}
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
}

// Signal sends TERM, or KILL, to whatever process has the number now: where a
// Tree is, its Signal does not mistake one for another.
func Signal(pid int, kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	_ = syscall.Kill(pid, sig)
}

// DeathSignal is the name of the signal that ended a process; "" when it ended
// by itself.
func DeathSignal(s *os.ProcessState) string {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal().String()
	}
	return ""
}
