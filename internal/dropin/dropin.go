package dropin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/run/trace"
	"carronade/internal/scenario"
	"carronade/internal/workload"
	"carronade/load"
)

// A Tool is an old program that carronade can replace.
type Tool struct {
	Name    string   // as in `carronade as NAME`
	Aliases []string // other names of the tool
	Short   string   // one line of help
	Kind    string   // kind of target that it sends to
	// OneDash is true if the tool's long flags may begin with one dash or two. It
	// takes carronade's flags the same way.
	OneDash bool
	// Main runs the tool's command line and returns the exit code. An error is one
	// that the tool has no message for.
	Main func(ctx context.Context, p *Program) (code int, err error)
}

// A Program is one command line of a tool, with everything it may use.
type Program struct {
	Called string   // the name it was called by
	Args   []string // without carronade's own flags
	Strict bool     // reproduce the old tool's errors
	// Generation is the wanted generation of the tool, in the tool's terms such as
	// 2018 or 4.1. With "" the tool derives it from its flags.
	Generation string

	In       io.Reader
	Out, Err io.Writer
	Color    bool // Out is a terminal that wants colors

	// Run runs a workload to its end, as `carronade run` does, and keeps the report
	// like any other. It returns an error for wrong usage, for a failed connection,
	// or for an interruption before anything was sent. Once anything was sent,
	// there is a report.
	Run func(ctx context.Context, w *workload.Document, observer Observer) (*report.Document, error)

	// RunTogether is Run for several workloads at the same time, for a tool whose
	// load has parts that are counted separately. The reports are in the order of
	// the workloads, and --report-json numbers its files. If one workload cannot
	// run, the others are ended, and no report is made.
	RunTogether func(ctx context.Context, ws []*workload.Document) ([]*report.Document, error)

	// Topics makes a load of operations on topics, as `carronade topics` does; w names
	// the target, and has the labels and the note of the report, which is kept like any
	// other. Nil if the tool's kind of target has no topics.
	Topics func(ctx context.Context, w *workload.Document, l TopicLoad) (*TopicResult, error)

	// Find searches the highest rate at which a workload's limits hold and its backlog does not grow, as
	// `carronade find` does: the workload has neither a rate nor a length. It returns the report of the search.
	Find func(ctx context.Context, w *workload.Document, budget time.Duration) (*report.Document, error)

	// Resolve checks a workload as Run does before it connects.
	Resolve func(w *workload.Document) error

	// Scenario runs a script whose steps o.Runner runs, and keeps its report, with the steps
	// inside: those that call Run or Topics with the context that they got. It sets the
	// process of the script.
	Scenario func(ctx context.Context, o scenario.Options) (scenario.Reason, *scenario.Fault, error)

	// Node makes this machine a node, which fires a part of what others run.
	Node func(ctx context.Context, o NodeOptions) (*Node, error)

	// Nodes connects to nodes.
	Nodes func(ctx context.Context, o NodesOptions) (*Nodes, error)

	// Serve runs the server of sessions of the shell until ctx is done.
	Serve func(ctx context.Context) error
}

// An Observer watches a run. Any function may be nil.
type Observer struct {
	Found    func(facts map[string]any) // facts about the system; before Opened
	Opened   func()                     // the target is open, and nothing was sent yet
	Interval func(load.Snapshot)        // an interval has closed; see load.Plan.Watch
	// Backlog is called when a state of the run's backlog begins, one call at a time, with the
	// state as in report.ReadBacklog and how long the one before lasted. It must not block.
	Backlog func(state string, took time.Duration)
	// RoundTrip receives the end-to-end time of each event of a round trip when it
	// comes back, one call at a time.
	RoundTrip func(endToEnd time.Duration)
	// Published is called for each interval, one call at a time. The error says why
	// the interval did not reach Graphite. If Published is set, it prints that
	// error, in the tool's wording.
	Published func(error)
	// ZeroP99 sends Graphite a p99 of 0 if nothing was answered.
	ZeroP99 bool
	// Completed receives the final outcomes of batches, on the threads that sent
	// them. Calls may be concurrent. It must not block or keep the slice.
	Completed func(out []load.Outcome)
	// Rows receives the row of each event, and when the run started, one call at a time, until
	// the run has ended.
	Rows func(started time.Time, r *trace.Row)
	// Kept says where the report is stored; after the run.
	Kept func(Kept)
	// Arrived receives what a consumer read, on the goroutines that read it. Calls of
	// different lanes may be concurrent. It must not block or keep the slice.
	Arrived func(lane int, as []load.Arrival)
}

// Kept is where a report is stored.
type Kept struct {
	ID    string
	Place string // a file or the address of a store; "": the report is not stored
	Why   string // why it is not
}

// Common contains the flags that every drop-in has besides the tool's own.
type Common struct {
	Strict     bool
	Generation string // "": derived from the flags
	ReportJSON string // file for the report; "": none
	// ExitOnDistrust keeps the exit code of a run that is not trusted; else it is 0, as in the tool.
	ExitOnDistrust bool
	Keep           []Setting
}

// A Setting is one of carronade's settings, given as a flag.
type Setting struct{ Name, Flag, Text string }

// CommonHelp is the help text of the common flags.
const CommonHelp = `flags of carronade, besides the tool's own:
  --strict             reproduce the tool's errors: its wrong computations and
                       its exit codes
  --generation NAME    which generation of the tool, if there are several
                       (default: guessed from the flags)
  --report-json FILE   write the whole report as JSON
  --exit-on-distrust   exit with 3, not 0, if the measurement is not trusted
  --store PLACE        where to keep the report (default: your own store)
  --no-store           do not keep the report
  --label K=V          a label for the report (repeatable)
`

// HelpRow writes a row of help: what the user types and, from the column on, what
// it does, wrapped. If typed is too long, it has a separate line.
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

// Split separates carronade's flags from the tool's own arguments, wherever they
// are before "--". The tool never sees them.
func (t *Tool) Split(args []string) (own []string, o Common, err error) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(own, args[i:]...), o, nil
		}
		flag, text, has := strings.Cut(args[i], "=")
		name := t.common(flag)
		switch {
		case name == "":
			own = append(own, args[i])
			continue
		case name == "strict" || name == "no-store" || name == "exit-on-distrust":
			if !has {
				text = "true"
			}
			if text != "true" && text != "false" {
				return nil, o, fmt.Errorf("%s=%s: must be true or false", flag, text)
			}
		case !has:
			if i++; i == len(args) {
				return nil, o, errors.New(flag + " needs a value")
			}
			text = args[i]
		}
		switch name {
		case "strict":
			o.Strict = text == "true"
		case "exit-on-distrust":
			o.ExitOnDistrust = text == "true"
		case "generation":
			o.Generation = text
		case "report-json":
			o.ReportJSON = text
		default:
			o.Keep = append(o.Keep, Setting{name, "--" + name, text})
		}
	}
	return own, o, nil
}

// common is the name of the flag if it is one of carronade's, else "".
func (t *Tool) common(flag string) string {
	name, ok := strings.CutPrefix(flag, "--")
	if !ok && t.OneDash {
		name, ok = strings.CutPrefix(flag, "-")
	}
	if ok && slices.Contains(commonFlags, name) {
		return name
	}
	return ""
}

// commonFlags are the names of carronade's flags. No tool has a flag of these names.
var commonFlags = []string{"strict", "generation", "report-json", "exit-on-distrust", "store", "no-store", "label"}

// Find returns the tool with this name, or with the name of the file at this path.
// The file may end in .sh, .exe or .jar, and may have a version before .jar, as in
// tool-4.2.11.jar.
func Find(tools []Tool, called string) (*Tool, bool) {
	name := baseName(called)
	if jar, ok := strings.CutSuffix(name, ".jar"); ok {
		name = jar
		if i := strings.LastIndexByte(jar, '-'); i > 0 && strings.Trim(jar[i:], "-.0123456789") == "" {
			name = jar[:i]
		}
	}
	for i := range tools {
		t := &tools[i]
		if t.Name == name || slices.Contains(t.Aliases, name) {
			return t, true
		}
	}
	return nil, false
}

// baseName is a program's name without its folder and its .exe or .sh.
func baseName(called string) string {
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(called), ".exe"), ".sh")
}

// RunsOthers reports whether the called program runs another, named by its first
// argument, as Kafka's kafka-run-class does.
func RunsOthers(called string) bool { return baseName(called) == "kafka-run-class" }

// A Draft is a workload under construction, with the settings that an old tool's
// arguments ask for.
type Draft struct{ workload.Document }

// Set gives a setting a value. Where names the argument that asked for it, for
// errors.
func (d *Draft) Set(name, where, text string) { d.Add(name, where, text) }

// AtMost sets the number of events after which a run ends, for a tool whose count
// is an upper bound: if another limit ends the run first, no event counts as
// missing.
func (d *Draft) AtMost(where, text string) {
	d.Add("count", where, text)
	d.Add("count-at-most", where, "true")
}

// SetRate sets the rate, in events per second.
func (d *Draft) SetRate(where string, perS float64) {
	d.Add("rate", where, strconv.FormatFloat(perS, 'f', -1, 64)+"/s")
}

// Setf is Set with a formatted text.
func (d *Draft) Setf(name, where, format string, args ...any) {
	d.Add(name, where, fmt.Sprintf(format, args...))
}
