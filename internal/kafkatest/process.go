package kafkatest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// A process is a child in a process group of its own, which the kernel ends
// with this process where it can.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once it ended
	err  error         // how; valid after done
}

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

// launch starts a command with its output in a file, which is appended to.
func launch(logFile, name string, args ...string) (*process, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &process{cmd: exec.Command(name, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := startHere(p.cmd); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// startHere starts cmd so that it ends with this process.
func startHere(cmd *exec.Cmd) error {
	cmd.SysProcAttr = attributes()
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	return <-started
}

// ended tells whether the process is gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process and its group at once, frozen or not.
func (p *process) kill() {
	if !p.ended() {
		killGroup(p.cmd.Process)
	}
	<-p.done
}

// stop asks the process to end, and ends it after the given time.
func (p *process) stop(patience time.Duration) error {
	if p.ended() {
		return nil
	}
	if err := terminate(p.cmd.Process); err != nil && !p.ended() {
		return fmt.Errorf("kafkatest: ask process %d to end: %w", p.cmd.Process.Pid, err)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.kill()
		return fmt.Errorf("kafkatest: process %d did not end within %v of being asked", p.cmd.Process.Pid, patience)
	}
}

// tail returns the last lines of a file, for an error text.
func tail(name string, bytesAtMost int64) string {
	f, err := os.Open(name)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > bytesAtMost {
		if _, err := f.Seek(-bytesAtMost, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text))
}
