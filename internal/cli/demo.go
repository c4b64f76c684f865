package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"

	"carronade/internal/conn"
	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/standin"
	"carronade/internal/workload"
	"carronade/protocol"
)

// A demo is an embedded server and a workload for it: enough to see a rate, batches and times,
// and small enough for two slow processors that also run the server.
type demo struct {
	server
	name     string      // of the server, as in "an embedded ..."
	watched  bool        // as the system under test: the report has the resources that its process uses
	about    string      // what it shows, as lines of help
	workload [][2]string // settings, by name
	next     string      // what to type next, as lines of help
}

const demoLong = `Starts an embedded server as a separate process, sends events to it for about
ten seconds in an open loop, and reports.`

const demoTrust = `The server shares this machine. If that affected the times, the report says so;
the exit code depends on the events alone.`

const demoNext = `
That was an embedded %s, on this machine. What to type next:

%s
  carronade calibrate              what this machine can generate
  carronade help words             what the words of the report mean`

// demos are the protocols with a demo.
func (s *session) demos() []kindEntry {
	return slices.DeleteFunc(s.listed(), func(p kindEntry) bool { return p.demo == nil })
}

// demoCommand returns the command of the demos that the program's kinds have.
func (s *session) demoCommand() *cobra.Command {
	var t cmdutil.Settings
	demos := s.demos()
	var names []string
	long := demoLong
	for i, p := range demos {
		names = append(names, p.kind)
		title := p.kind
		if i == 0 {
			title += ", the default"
		}
		long += "\n\n" + title + ":\n" + p.demo.about
	}
	cmd := &cobra.Command{
		Use: "demo [" + strings.Join(names, "|") + "]", Short: "an embedded server, ten seconds of load, a report",
		Long:      long + "\n\n" + demoTrust,
		ValidArgs: names,
		Args:      cmdutil.Args(0, 1, "at most the name of a protocol"),
		RunE: cmdutil.Run(func(cmd *cobra.Command, args []string) error {
			chosen := 0
			if len(args) == 1 {
				chosen = slices.Index(names, args[0])
			}
			if chosen < 0 || len(demos) == 0 {
				return s.noDemo(args, names)
			}
			return s.demo(cmd.Context(), demos[chosen].demo, &t)
		}),
	}
	for _, name := range []string{"full", "json", "json-file", "quiet", "store", "no-store", "note"} {
		t.BindOne(cmd.Flags(), name)
	}
	return cmd
}

// noDemo is the error of an unknown demo.
func (s *session) noDemo(args, names []string) error {
	if len(names) == 0 {
		return &protocol.Error{Err: errors.New("this build has no demo"), Hint: "carronade run --help lists its targets"}
	}
	return &protocol.Error{
		Err:  fmt.Errorf("unknown demo %q", args[0]),
		Hint: advice.DidYouMean(args[0], names, "carronade demo %s", "the demos are: "+strings.Join(names, ", ")),
	}
}

func (s *session) demo(ctx context.Context, demo *demo, t *cmdutil.Settings) error {
	starting, done := context.WithTimeout(ctx, 20*time.Second)
	defer done()
	child, err := s.spawn(starting, ctx, demo.args...)
	if err != nil {
		return err
	}
	var d workload.Document
	for _, row := range demo.workload {
		d.Add(row[0], "the demo's "+row[0], row[1])
	}
	d.Add("target", "the demo's target", demo.target(child.Addr()))
	d.Add("label", "the demo's label", report.DemoLabel+"="+demo.args[0])
	if demo.watched && runtime.GOOS == "linux" { // elsewhere processes are not watched
		d.Add("system-pid", "the demo's server", strconv.Itoa(child.Pid()))
	}
	var o outputs
	// The configuration is about the user's own servers and where their metrics go. A demo
	// uses only its store.
	w, err := workload.Resolve(s.Kinds, &d, nil)
	if err == nil {
		var end func()
		if o, end, err = s.prepare(ctx, t, dropin.Observer{}, w); err == nil {
			defer end()
			if !o.quiet {
				s.note("an embedded %s listens on %s", demo.name, child.Addr())
			}
			err = s.runTasks(ctx, o)
		}
	}
	if stopErr := child.Stop(); stopErr != nil && err == nil {
		err = fmt.Errorf("the embedded %s: %w", demo.name, stopErr)
	}
	// A demo shows the accounting, on a machine that the server shares and that may be busy.
	// The report says when its times are not trustworthy; the exit code does not.
	if c, ok := errors.AsType[exitCode](err); ok && c.Code == host.ExitUntrusted {
		err = nil
	}
	if err == nil && !o.quiet && !o.json {
		s.note(demoNext, demo.name, demo.next)
	}
	return err
}

// spawn starts a stand-in in its own process, so that its CPU time is not counted as the
// generator's. It runs until life ends or it is stopped.
func (s *session) spawn(starting, life context.Context, args ...string) (*standin.Child, error) {
	type started struct {
		c   *standin.Child
		err error
	}
	// An interrupt must not end the server before the answers are in, so the child does not
	// depend on the run's context.
	ch := make(chan started, 1)
	go func() {
		c, err := standin.Spawn(context.WithoutCancel(life), "", args...)
		ch <- started{c, err}
	}()
	select {
	case r := <-ch:
		if r.err != nil {
			return nil, &protocol.Error{Err: r.err, Hint: fmt.Sprintf("carronade standin %s starts it alone and shows its errors", strings.Join(args, " "))}
		}
		end := conn.Own(r.c.Addr()) // also in a job of a server that may not connect to this machine
		go func() {
			<-r.c.Ended()
			end()
		}()
		return r.c, nil
	case <-starting.Done():
		go func() {
			if r := <-ch; r.c != nil {
				_ = r.c.Stop()
			}
		}()
		if errors.Is(starting.Err(), context.Canceled) {
			return nil, context.Canceled
		}
		return nil, errors.New("the embedded server did not start within 20 s")
	}
}
