//go:build unix

package system

import (
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

// killGroup ends a group whose number was its leader's. The number is not given
// to another process while any is left in the group; when none is, the worst is
// that there is no such group.
func killGroup(p *os.Process, _ bool) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// Signal sends TERM, or KILL, to a process that this one did not start itself.
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
