package kafkatest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"carronade/test/testkit"
)

// A process is a child process in its own process group. The kernel ends it with
// this process, where the system supports that.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how it ended; valid after done
}

// launch starts a command and appends its output to a file.
func launch(logFile, name string, args ...string) (*process, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &process{cmd: exec.Command(name, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := testkit.Launch(p.cmd); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process and its group at once, even if it is frozen.
func (p *process) kill() {
	if !p.ended() {
		killGroup(p.cmd.Process)
	}
	<-p.done
}

// stop asks the process to end, and kills it after the timeout.
func (p *process) stop(timeout time.Duration) error {
	if p.ended() {
		return nil
	}
	if err := terminate(p.cmd.Process); err != nil && !p.ended() {
		return fmt.Errorf("kafkatest: ask process %d to end: %w", p.cmd.Process.Pid, err)
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.kill()
		return fmt.Errorf("kafkatest: process %d did not end within %v after it was asked to", p.cmd.Process.Pid, timeout)
	}
}

// tail returns the end of a file, for an error text.
func tail(name string, maxBytes int64) string {
	f, err := os.Open(name)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > maxBytes {
		if _, err := f.Seek(-maxBytes, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text))
}
