package testkit

import (
	"os/exec"
	"runtime"
	"sync"
)

// starter starts child processes on one thread that never ends: the kernel sends a
// parent-death signal when the *thread* that forked ends (prctl(2),
// PR_SET_PDEATHSIG).
var starter = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// Launch starts a command in its own process group. On Linux the command ends with
// this process, however this process ends. The caller waits for the command.
func Launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr = attributes()
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	return <-started
}
