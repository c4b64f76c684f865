package standin

import (
	"os"
	"os/exec"
	"syscall"
)

// tieToParent has the kernel end the child when the thread that starts it ends.
func tieToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGTERM,
		// A Ctrl-C at the terminal is for the parent to act on: it still
		// has to drain, and wants its answers.
		Setpgid: true,
	}
}

func terminate(p *os.Process) { _ = p.Signal(syscall.SIGTERM) }
