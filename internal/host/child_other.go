//go:build !unix

package host

import (
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
