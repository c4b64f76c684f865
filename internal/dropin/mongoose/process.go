package mongoose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"carronade/internal/host"
	"carronade/internal/scenario"
)

// processKind is the kind of a step that is a process, with its settings.
const (
	processKind = "process"
	argsSetting = "args"
	showSetting = "inherit"
	joinSetting = "merge"
)

// mostOutput limits what is kept of each output of a process, in bytes. The rest is discarded.
const mostOutput = 1 << 20

// lastOutput is how long the output of a process that ended is still read, if others have it open.
const lastOutput = 5 * time.Second

// processRequest is the step of a scenario that runs another program. With inherit, what it
// prints is shown; otherwise its end has it, with merged both outputs as one.
func processRequest(args []string, inherit, merged bool) *scenario.Step {
	s := &scenario.Step{Kind: processKind, Name: args[0], Aside: true, Options: []scenario.Option{{Name: argsSetting, Values: args}}}
	for name, on := range map[string]bool{showSetting: inherit, joinSetting: merged} {
		if on {
			s.Options = append(s.Options, scenario.Option{Name: name, Values: []string{"true"}})
		}
	}
	return s
}

// A processEnd is the end of a process, as JSON in the report of its step.
type processEnd struct {
	Code int      `json:"code"` // its exit code
	Out  []string `json:"out"`  // lines
	Err  []string `json:"err"`
}

// process returns what runs a process.
func (r *runner) process(s *scenario.Step) (func(ctx context.Context) *scenario.Ended, error) {
	var args []string
	set := make(map[string]bool)
	for _, o := range s.Options {
		if set[o.Name] = true; o.Name == argsSetting {
			args = o.Values
		}
	}
	switch {
	case !r.exec:
		return nil, &scenario.Fault{At: s.At, Text: "the script may not start processes", Hint: "--allow-exec permits it"}
	case len(args) == 0:
		return nil, &scenario.Fault{At: s.At, Text: "the process has no command"}
	case r.dry:
		r.printf("process at %s: %s\n", s.At, strings.Join(args, " "))
		return func(context.Context) *scenario.Ended { return processEnded(&processEnd{}) }, nil
	}
	return func(ctx context.Context) *scenario.Ended {
		return r.runProcess(ctx, s, args, set[showSetting], set[joinSetting])
	}, nil
}

func processEnded(e *processEnd) *scenario.Ended {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // of strings
	}
	return &scenario.Ended{Report: text}
}

// runProcess runs a process to its end, or until the context ends.
func (r *runner) runProcess(ctx context.Context, s *scenario.Step, args []string, inherit, merged bool) *scenario.Ended {
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // the user permitted it; its whole group ends with the context
	var out, errs limited
	cmd.Stdout, cmd.Stderr = &out, &errs
	switch {
	case inherit:
		cmd.Stdout, cmd.Stderr = r.program.Out, r.program.Err
	case merged:
		cmd.Stderr = &out
	}
	cmd.WaitDelay = lastOutput
	child, err := host.StartPiped(cmd)
	if err != nil {
		return &scenario.Ended{Code: host.ExitFailed, Fault: &scenario.Fault{At: s.At, Text: fmt.Sprintf("cannot run %s: %v", args[0], cause(err))}}
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		child.Kill()
		<-child.Done()
	}
	return processEnded(&processEnd{Code: cmd.ProcessState.ExitCode(), Out: out.lines(), Err: errs.lines()})
}

// cause is the cause of an error of starting a program, without its name.
func cause(err error) error {
	if found, ok := errors.AsType[*exec.Error](err); ok {
		return found.Err
	}
	return host.Reason(err)
}

// limited keeps the beginning of what is written. Safe for concurrent use, since two streams of a
// process may be one.
type limited struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p[:min(len(p), max(mostOutput-l.text.Len(), 0))])
	return len(p), nil
}

func (l *limited) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for line := range strings.Lines(l.text.String()) {
		out = append(out, strings.TrimRight(line, "\r\n"))
	}
	return out
}
