package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"
)

// The exit codes of the child.
const (
	childEnded  = 0
	childFailed = 1 // the parent is gone, or does not follow the protocol
	childFull   = 3 // the script needs more memory than it may have
	childLate   = 4 // the script computes for longer than it may
)

// Main is the child: it runs the script that the parent sends on in, asks for steps on out, and
// returns the exit code of the process. languages are those besides our own. It ends the process
// by itself when in ends, or when the script needs too much memory or time and the interpreter
// cannot be stopped.
func Main(in io.Reader, out io.Writer, languages map[string]Language) int {
	p := newLines(in, out)
	var begin beginning
	if err := p.read(&begin); err != nil {
		return childFailed
	}
	debug.SetMemoryLimit(begin.Memory)
	h := &childHost{lines: p, replies: make(chan reply), clock: newClock()}
	go h.listen()
	go h.watchMemory(begin.Memory)
	go h.watchTime(begin.Compute)
	language := Language(runModule)
	if name := begin.Script.Language; name != "" {
		language = languages[name]
	}
	if language == nil {
		return childFailed
	}
	h.clock.begin()
	err := runSafely(language, &begin.Script, h)
	h.clock.end()
	end := request{Do: doEnd}
	if err != nil {
		var f *Fault
		if !errors.As(err, &f) {
			f = &Fault{At: begin.Script.Path, Text: err.Error()}
		}
		end.Fault = f
	}
	if p.write(&end) != nil {
		return childFailed
	}
	return childEnded
}

// A beginning is the first line of the parent.
type beginning struct {
	Script  Script        `json:"script"`
	Memory  int64         `json:"memory"`
	Compute time.Duration `json:"compute"`
}

// runSafely runs the script. A panic of the interpreter is a fault of the script: it made the
// interpreter do something that it cannot do.
func runSafely(language Language, s *Script, h Host) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Fault{At: s.Path, Text: fmt.Sprintf("the interpreter failed: %v", p)}
		}
	}()
	return language(s, h)
}

// A childHost is the host in the child.
type childHost struct {
	lines   *lines
	replies chan reply
	clock   *clock
	stopper stopper
}

// listen reads replies until the parent is gone, which ends this process, whatever the script does.
func (h *childHost) listen() {
	for {
		var r reply
		if h.lines.read(&r) != nil {
			os.Exit(childFailed)
		}
		h.replies <- r
	}
}

// call sends a request and waits for its reply. The time until then is not the script's.
func (h *childHost) call(r *request) (reply, error) {
	h.clock.end()
	defer h.clock.begin()
	if err := h.lines.write(r); err != nil {
		if errors.Is(err, errLongLine) {
			return reply{}, &Fault{At: r.At, Text: err.Error()}
		}
		return reply{}, err
	}
	got := <-h.replies
	if got.Fault != nil {
		return got, got.Fault
	}
	return got, nil
}

// Start implements Host.
func (h *childHost) Start(s *Step) (int, error) {
	got, err := h.call(&request{Do: doStart, Step: s, At: s.At})
	if err == nil {
		h.clock.reset()
	}
	return got.Number, err
}

// Stop implements Host.
func (h *childHost) Stop(numbers ...int) error {
	_, err := h.call(&request{Do: doStop, Numbers: numbers})
	return err
}

// Await implements Host.
func (h *childHost) Await(limit time.Duration, numbers ...int) (*Ended, error) {
	got, err := h.call(&request{Do: doAwait, Numbers: numbers, Limit: limit})
	if err == nil {
		h.clock.reset()
	}
	return got.Ended, err
}

// Check implements Host.
func (h *childHost) Check(at, report string, limits ...string) (bool, error) {
	got, err := h.call(&request{Do: doCheck, At: at, Text: report, Limits: limits})
	return got.OK, err
}

// Report implements Host.
func (h *childHost) Report(at, reference string) (json.RawMessage, error) {
	got, err := h.call(&request{Do: doReport, At: at, Text: reference})
	return got.Report, err
}

// Mark implements Host.
func (h *childHost) Mark(at, kind, text string) error {
	_, err := h.call(&request{Do: doMark, At: at, Kind: kind, Text: text})
	return err
}

// Print implements Host.
func (h *childHost) Print(text string) error {
	_, err := h.call(&request{Do: doPrint, Text: text})
	return err
}

// Warn implements Host.
func (h *childHost) Warn(text string) error {
	_, err := h.call(&request{Do: doWarn, Text: text})
	return err
}

// OnLimit implements Host.
func (h *childHost) OnLimit(stop func(text string)) { h.stopper.set(stop) }
