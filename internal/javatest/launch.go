package javatest

import (
	"os/exec"
	"runtime"
	"sync"
)

// starter starts children on one thread that never ends: a parent-death signal
// is sent when the *thread* that forked ends (prctl(2), PR_SET_PDEATHSIG).
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

// Launch starts a command in a process group of its own so that it ends with
// this process, however that ends (on Linux). The caller waits for it.
func Launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr = attributes()
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	return <-started
}
