package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"carronade/internal/host"
	"carronade/units"
)

// tail is how long a job waits, after its process ended, for output that other
// processes hold open.
const tail = 2 * time.Second

// framesFile is the descriptor for Options.Frames in a job's process.
const framesFile = 3

// A process is one job's, with the goroutines that read what it writes.
type process struct {
	child   *host.Child
	files   []*os.File    // read ends: of its output, and of its frames
	printed chan struct{} // closed when the output was read
	read    chan struct{} // closed when all was read
	crash   *Crash        // what it printed when it crashed; for use after printed
}

// start starts the process of a job.
func (q *Queue) start(j *Job, out *output) (*process, error) {
	lock, err := os.OpenFile(q.folder.running(j.ID), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer lock.Close() // the process has it too
	if _, err := host.TryLock(lock, false); err != nil {
		return nil, err
	}

	words := append(slices.Clone(q.o.Program), j.Args...)
	cmd := exec.Command(words[0], words[1:]...) //nolint:gosec,noctx // our own program; it is interrupted, and not killed at once
	cmd.Dir = j.Dir
	if cmd.Dir == "" {
		cmd.Dir = q.folder.path("files")
	}
	cmd.Env = slices.DeleteFunc(append(q.o.Environ(j), j.Env...), func(e string) bool { return strings.HasPrefix(e, FramesVariable+"=") })

	p := &process{printed: make(chan struct{}), read: make(chan struct{}), crash: NewCrash(out.add)}
	var given []*os.File // write ends, for the process
	pipe := func() (*os.File, error) {
		r, w, err := os.Pipe()
		if err == nil {
			p.files, given = append(p.files, r), append(given, w)
		}
		return w, err
	}
	printed, err := pipe()
	if err == nil && runtime.GOOS != "windows" {
		cmd.ExtraFiles = []*os.File{nil, lock} // from 3; the lock is not read, see leftover
		if q.o.Frames != nil {
			cmd.ExtraFiles[0], err = pipe()
			cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", FramesVariable, framesFile))
		}
	}
	if err == nil {
		cmd.Stdout, cmd.Stderr = printed, printed
		p.child, err = host.StartPiped(cmd)
	}
	for _, f := range given {
		f.Close()
	}
	if err != nil {
		for _, f := range p.files {
			f.Close()
		}
		return nil, err
	}
	if id, ok := host.Identify(p.child.Pid()); ok {
		// Without it, the lock alone says whether the process is there.
		if b, err := json.Marshal(id); err == nil {
			_, _ = lock.WriteAt(b, 0)
		}
	}
	p.follow(q, j.ID)
	return p, nil
}

// follow reads what the process writes.
func (p *process) follow(q *Queue, id int64) {
	go func() {
		defer close(p.printed)
		buf := make([]byte, 32<<10)
		for {
			n, err := p.files[0].Read(buf)
			if n > 0 {
				p.crash.Write(buf[:n]) //nolint:errcheck // it has none
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(p.read)
		if len(p.files) > 1 {
			q.o.Frames(id, p.files[1])
			_, _ = io.Copy(io.Discard, p.files[1]) // the process must not wait for a reader
		}
		<-p.printed
	}()
}

// close ends what is left of the process's group, and waits until all that it
// wrote was read. Other processes that it started may still hold its output
// open; what they write later is lost.
func (p *process) close(hurry <-chan struct{}) {
	p.child.Kill()
	limit := time.NewTimer(tail)
	defer limit.Stop()
	select {
	case <-p.read:
	case <-limit.C:
	case <-hurry:
	}
	for _, f := range p.files {
		f.Close()
	}
	<-p.printed
}

// stops are why and how a process was ended.
type stops struct {
	cancelled bool   // by a user
	closing   bool   // the server ends
	full      string // why its files were too large; "": they were not
	killed    string // why it was killed; "": it was not
}

// wait waits until the process ended, and interrupts and kills it if needed. full says when its files are too large.
func (q *Queue) wait(p *process, cancel <-chan struct{}, full <-chan string) (s stops) {
	var (
		closing, hurry = q.closing, q.hurry
		limit          time.Duration
		expired        <-chan time.Time
	)
	// A second interrupt would end the process without a report, so there is one.
	interrupt := func(most time.Duration) {
		if expired == nil {
			p.child.Interrupt()
		}
		limit, expired = most, time.After(most)
	}
	for {
		select {
		case <-p.child.Done():
			return s
		case <-cancel:
			cancel, s.cancelled = nil, true
			if s.closing {
				continue // its limit is shorter
			}
			interrupt(q.o.CancelLimit)
		case s.full = <-full:
			full = nil
			interrupt(q.o.CancelLimit)
		case <-closing:
			closing, s.closing = nil, true
			interrupt(q.o.Drain)
		case <-expired:
			s.killed = "it did not end within " + units.FormatDuration(limit)
			p.child.Kill()
		case <-hurry:
			hurry, s.closing = nil, true
			s.killed = "the server had to end at once"
			p.child.Kill()
		}
	}
}

// verdict sets the state of a job whose process ended. noMemory is why it crashed, if the system gave it no more.
func verdict(j *Job, state *os.ProcessState, s stops, lastError, noMemory string) {
	j.Exit = state.ExitCode()
	signal := host.DeathSignal(state)
	// By an interrupt, if there was one. Windows has none: processes are killed, and
	// have exit code 1 then.
	ended := j.Exit == host.ExitInterrupted || signal != "" || runtime.GOOS == "windows" && j.Exit == 1
	late := ""
	if s.killed != "" {
		late = "; killed because " + s.killed
	}
	switch {
	case s.cancelled && ended:
		j.State, j.Reason = Cancelled, "cancelled while it ran"+late
	case s.closing && ended:
		j.State, j.Reason = Interrupted, "the server was stopped while it ran"+late
	case s.full != "" && ended:
		j.State, j.Reason = Failed, s.full+late
	case noMemory != "" && (j.Exit == host.ExitFailed || signal != ""): // Go's runtime exits with 2, that of C by a signal
		j.State, j.Reason = Failed, noMemory
	case slices.Contains([]int{host.ExitOK, host.ExitBroken, host.ExitUntrusted, host.ExitCannotTell}, j.Exit):
		j.State = Done
	case signal != "":
		j.State, j.Reason = Failed, "a signal ended its process: "+signal
	case j.Exit == host.ExitInterrupted:
		j.State, j.Reason = Failed, "its process was interrupted from outside"
	case lastError != "":
		j.State, j.Reason = Failed, lastError
	default:
		j.State, j.Reason = Failed, fmt.Sprintf("its process ended with exit code %d", j.Exit)
	}
}

// whyNot is why a process could not be started.
func whyNot(err error) string {
	if call, ok := errors.AsType[*exec.Error](err); ok {
		err = fmt.Errorf("%s: %w", call.Name, host.Reason(call.Err))
	}
	return oneLine("its process could not be started: " + err.Error())
}
