//go:build unix

package kafkatest

import (
	"os"
	"syscall"
)

func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
