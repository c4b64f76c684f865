package scenario

import (
	"encoding/json"
	"time"
)

// A Script is what the child runs.
type Script struct {
	Path     string   `json:"path"` // for errors, as the user typed it
	Source   string   `json:"source"`
	Language string   `json:"language"` // the name of a Language; "": our own
	Args     []string `json:"args"`
	Seed     uint64   `json:"seed"`  // of all that is random
	Depth    int      `json:"depth"` // of calls
	// Dry means that steps are checked and not run: they end at once, with reports without
	// events.
	Dry bool `json:"dry"`
	// Data is what the language needs besides; nil: nothing.
	Data json.RawMessage `json:"data,omitempty"`
}

// A Language is an API that a script sees. It runs a script to its end, in the child, on the
// calling goroutine. The error is a *Fault if it has a place in the script.
type Language func(s *Script, h Host) error

// A Host runs steps for a script. One goroutine uses it: the script's. An error that is a *Fault
// is of the request, and the script may go on after it. Any other means that the parent is gone.
//
// When the scenario is over (Ctrl-C, its time, its number of steps), the parent does not return
// from a call any more, and ends the child.
type Host interface {
	// Start checks a step and begins it. It returns the number of the step, from 1, and does
	// not wait for its end.
	Start(s *Step) (number int, err error)
	// Stop ends steps as an interrupt does: they stop sending, wait for answers and report. It
	// does not wait for that. Steps that ended already are ignored.
	Stop(numbers ...int) error
	// Await waits until one of these steps has ended, for the limit at most; below 0: without
	// one. Without numbers it sleeps. It returns nil after the limit. Each end is returned
	// once.
	Await(limit time.Duration, numbers ...int) (*Ended, error)
	// Check checks limits, in the grammar of --slo, on the report of a step or, if it is
	// stored, of any other run, and returns whether all hold. Broken limits count in the exit
	// code of the scenario. at is the place of the check in the script.
	Check(at, report string, limits ...string) (bool, error)
	// Report reads a stored report as JSON. The reference is one of `carronade report show`.
	Report(at, reference string) (json.RawMessage, error)
	// Mark adds a text with the time to the report of the scenario. at is its place. With a kind
	// (fault, heal, note) it also marks the steps in progress that take marks.
	Mark(at, kind, text string) error
	// Print prints a line for the user.
	Print(text string) error
	// Warn prints a warning once, and puts it into the report of the scenario.
	Warn(text string) error
	// OnLimit sets what is called, on another goroutine, when the script computes for too long
	// or takes too much memory. It stops the interpreter with a Fault of this text at the place
	// where the script is. A script that does not end then is killed.
	OnLimit(stop func(text string))
}

// The kinds of steps.
const (
	RunStep  = "run"
	FindStep = "find"
)

// A Step is a request for one.
type Step struct {
	Kind   string `json:"kind"`
	Name   string `json:"name,omitempty"` // for the user; "": the parent makes one
	At     string `json:"at"`             // its place in the script: file:line:column
	Target string `json:"target,omitempty"`
	// Options are settings by their names in workload files and, of a search, flags of
	// `carronade find`.
	Options []Option `json:"options,omitempty"`
	// Parts are the loads of which a step consists, in order, if its kind has several.
	Parts []Part `json:"parts,omitempty"`
	// Aside means that the report is neither stored nor part of the scenario's, and that its
	// exit code does not count.
	Aside bool `json:"aside,omitempty"`
}

// A Part is one load of a step with several. Its options are in addition to those of the step.
type Part struct {
	Target  string   `json:"target,omitempty"`
	Options []Option `json:"options,omitempty"`
}

// An Option is one setting as the script gave it. A list has several values.
type Option struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
	At     string   `json:"at,omitempty"` // its own place; "": that of the step
}

// An Ended is the end of a step.
type Ended struct {
	Number int `json:"number"`
	Code   int `json:"-"` // the exit code of the same command; the child does not need it
	// Report is the JSON of the step's report without histograms; nil if there is none.
	Report json.RawMessage `json:"report,omitempty"`
	// Fault is why the report is missing: the step could not start, or it failed.
	Fault *Fault `json:"fault,omitempty"`
	// Elapsed is how long the step took, in ns.
	Elapsed time.Duration `json:"elapsed"`
}

// A Fault is an error with a place in the script.
type Fault struct {
	At   string `json:"at"` // file:line:column, "" if there is none
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// Error implements error.
func (f *Fault) Error() string {
	if f.At == "" {
		return f.Text
	}
	return f.At + ": " + f.Text
}
