package compat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
)

// A Tool is an old program that carronade is a drop-in for.
type Tool struct {
	Name  string   // as in `carronade as NAME`
	Calls []string // other names that it is called by
	Short string   // one line of help
	Kind  string   // of target that it fires at
	// Main is the tool's command line. It returns the exit code; an error is
	// one that the tool itself has no words for.
	Main func(ctx context.Context, p *Program) (code int, err error)
}

// A Program is one command line of a tool, with everything it may touch.
type Program struct {
	Called string   // the name it was called by
	Args   []string // the tool's own
	Strict bool     // the old tool's quirks are wanted
	// Generation is which of the tool's generations is wanted, in words of the
	// tool's own such as 2018 or 4.1; "" is for the tool to tell from its flags.
	Generation string

	In       io.Reader
	Out, Err io.Writer
	Color    bool // Out is a terminal that wants colors

	// Fire runs a workload to its end, as `carronade run` does, and keeps the
	// report like any other. The error is one of usage, of the connection or of
	// an interruption before anything was fired; from then on there is a
	// report.
	Fire func(ctx context.Context, w *workload.Document, observer Observer) (*report.Document, error)

	// Together is Fire of several workloads at the same time, for a tool whose
	// load has parts that are counted apart. The reports are in the order of the
	// workloads, and --report-json numbers its files. Where one cannot be fired
	// the others are ended, and there are none.
	Together func(ctx context.Context, ws []*workload.Document) ([]*report.Document, error)

	// Topics makes a load of operations on topics, as `carronade topics` does; w
	// says to where. Its report is kept like any other. Nil where the tool's kind of target has no topics.
	Topics func(ctx context.Context, w *workload.Document, l TopicLoad) (*TopicResult, error)
}

// An Observer sees a run while it goes on. Any function may be nil.
type Observer struct {
	Found    func(facts map[string]any) // what was found out about the system; before Opened
	Opened   func()                     // the target is open, and nothing was fired yet
	Interval func(load.Snapshot)        // an interval has closed; see load.Plan.Watch
	// Met is told the end-to-end time of each event of a round trip as it comes
	// back, one call at a time.
	Met func(endToEnd time.Duration)
	// Published is told of each interval whether Graphite was told of it, one call at a
	// time; the error is why not. Who has it says so in words of its own.
	Published func(error)
	// Zeros tells Graphite of a p99 of 0 where nothing was answered.
	Zeros bool
	// Fired sees the outcomes of batches, completed for good, on the threads that sent
	// them, several at once. It must not block, nor keep the slice.
	Fired func(out []load.Outcome)
}

// Common are the flags that every drop-in has besides the tool's own.
type Common struct {
	Strict     bool
	Generation string // "" is by the flags
	ReportJSON string // file for the report; "" is none
}

// CommonHelp is what help says of them.
const CommonHelp = `flags of carronade, besides the tool's own:
  --strict             reproduce the tool's quirks: its wrong computations and
                       its exit codes
  --generation NAME    which generation of the tool, if there are several
                       (default: guessed from the flags)
  --report-json FILE   write the whole report as JSON
`

// HelpRow writes a row of help: what somebody types, and from the column on what
// it does, wrapped; what is typed has lines of its own where it is too long.
func HelpRow(w io.Writer, column int, typed, does string) {
	line := "  " + typed
	if len(line) >= column {
		fmt.Fprintln(w, line)
		line = ""
	}
	for _, text := range layout.Wrap(does, layout.Columns-column) {
		fmt.Fprintf(w, "%-*s%s\n", column, line, text)
		line = ""
	}
}

// Split takes our flags out of a tool's arguments.
func Split(args []string) (own []string, o Common, err error) {
	for i := 0; i < len(args); i++ {
		name, text, has := strings.Cut(args[i], "=")
		var value *string
		switch name {
		case "--strict":
			if !has {
				o.Strict = true
				continue
			}
		case "--generation":
			value = &o.Generation
		case "--report-json":
			value = &o.ReportJSON
		}
		if value == nil {
			own = append(own, args[i])
			continue
		}
		if !has {
			if i++; i == len(args) {
				return nil, o, errors.New(name + " needs a value")
			}
			text = args[i]
		}
		*value = text
	}
	return own, o, nil
}

// Find returns the tool that is called so: by a name, or by the path of a file
// of such a name, with .sh, .exe or .jar behind it or not, and before .jar a
// version, as in tool-4.2.11.jar.
func Find(tools []Tool, called string) (*Tool, bool) {
	name := bare(called)
	if jar, ok := strings.CutSuffix(name, ".jar"); ok {
		name = jar
		if i := strings.LastIndexByte(jar, '-'); i > 0 && strings.Trim(jar[i:], "-.0123456789") == "" {
			name = jar[:i]
		}
	}
	for i := range tools {
		t := &tools[i]
		if t.Name == name {
			return t, true
		}
		for _, c := range t.Calls {
			if c == name {
				return t, true
			}
		}
	}
	return nil, false
}

// bare is a program's name without its folder and what tells it is a program.
func bare(called string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(called), ".exe"), ".sh")
}

// RunsOthers reports whether a program is called by the name of one that runs
// another, which its first argument names: Kafka's kafka-run-class.
func RunsOthers(called string) bool { return bare(called) == "kafka-run-class" }

// A Draft is a workload in the making: settings as an old tool's arguments have
// them.
type Draft struct{ workload.Document }

// Set gives a setting a value. Where is the argument that said so, for errors.
func (d *Draft) Set(name, where, text string) { d.Add(name, where, text) }

// AtMost sets the number of events that a run ends after, for a tool whose count
// is a bound: where another limit ends the run first, none is missing.
func (d *Draft) AtMost(where, text string) {
	d.Add("count", where, text)
	d.Add("count-at-most", where, "true")
}

// Setf is Set with a text to be made.
func (d *Draft) Setf(name, where, format string, args ...any) {
	d.Add(name, where, fmt.Sprintf(format, args...))
}
