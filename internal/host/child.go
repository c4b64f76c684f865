package host

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
)

// A Child is another program that this one runs: in its own process group, so
// that an interrupt at the terminal reaches only this process. On Linux the
// kernel ends it when this process ends for any reason.
//
// Its output goes line by line to a function, on a separate goroutine. Safe for
// concurrent use.
type Child struct {
	cmd   *exec.Cmd
	done  chan struct{} // closed when the process ended
	err   error         // how; read after done
	drain chan struct{} // closed when its output ended
}

// StartChild starts cmd, whose Stdout and Stderr must be nil: each line of both
// goes to line, without its end, cut at 8 KiB. A nil line discards them. The
// lines end when every process that has the output open has ended, which may be
// later than Done.
func StartChild(cmd *exec.Cmd, line func(string)) (*Child, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	c, err := StartPiped(cmd)
	in.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	go func() {
		defer close(c.drain)
		defer out.Close()
		if line == nil {
			_, _ = io.Copy(io.Discard, out)
			return
		}
		Lines(out, line)
	}()
	return c, nil
}

// StartPiped starts cmd with the streams that it has. Drained of the child is
// never closed.
func StartPiped(cmd *exec.Cmd) (*Child, error) {
	tie(cmd)
	c := &Child{cmd: cmd, done: make(chan struct{}), drain: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// On Linux the child dies with the thread that started it, so that
		// thread must last as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			c.err = cmd.Wait()
		}
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// MaxLine is the length at which a line is cut, in bytes.
const MaxLine = 8 << 10

// Lines passes each line of r to f, without its end and cut at 8 KiB, until r
// ends. It allocates one string for each.
func Lines(r io.Reader, f func(string)) {
	var partial []byte
	cut := false // the rest of the line is skipped
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		for b := buf[:n]; len(b) > 0; {
			end := 0
			for end < len(b) && b[end] != '\n' {
				end++
			}
			whole := end < len(b)
			if !cut {
				partial = append(partial, b[:min(end, MaxLine-min(len(partial), MaxLine))]...)
				cut = len(partial) >= MaxLine
			}
			if whole {
				if k := len(partial); k > 0 && partial[k-1] == '\r' {
					partial = partial[:k-1]
				}
				f(string(partial))
				partial, cut = partial[:0], false
				end++
			}
			b = b[end:]
		}
		if err != nil {
			if len(partial) > 0 {
				f(string(partial))
			}
			return
		}
	}
}

// Pid is the process id.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Done is closed when the process ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Drained is closed when its output ended.
func (c *Child) Drained() <-chan struct{} { return c.drain }

// Err is the error of exec.Cmd.Wait; valid after Done.
func (c *Child) Err() error { return c.err }

// State is how the process ended, nil before Done.
func (c *Child) State() *os.ProcessState {
	select {
	case <-c.done:
		return c.cmd.ProcessState
	default:
		return nil
	}
}

// Terminate asks the process to end (TERM; on systems without signals it is
// killed).
func (c *Child) Terminate() {
	if c.State() == nil {
		terminate(c.cmd.Process)
	}
}

// Interrupt asks the process to end as Ctrl-C does (INT; on systems without
// signals it is killed).
func (c *Child) Interrupt() {
	if c.State() == nil {
		interrupt(c.cmd.Process)
	}
}

// Kill ends the process and all others in its group at once. The group may
// outlive its leader, so Kill may be called after Done too.
func (c *Child) Kill() { killGroup(c.cmd.Process, c.State() == nil) }
