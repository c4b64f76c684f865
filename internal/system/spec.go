package system

import (
	"context"
	"net/http"
	"time"

	"carronade/measure"
)

// A Spec describes the requested system under test. One of Command, PID,
// Container and Image is set, or none for a system on another machine, for
// which the report has its revision (Git) and its own metrics (Vars, Metrics,
// GCLog).
type Spec struct {
	// Command is a program and its arguments, in one text: blanks separate
	// words, quotes and backslashes protect blanks, and no other character is
	// special; for a shell, write sh -c '...'. {tree}, {revision}, {branch} and
	// {image} are replaced by those of the build (Build).
	Command   string
	PID       int      // a running process; it and its descendants are watched
	Container string   // the name or id of a running container
	Image     string   // an image to run; {image} is that of the build
	Args      []string // of the image's own program

	Env []string // NAME=VALUE for the started process; if the value is env:NAME or file:PATH, it is a secret
	Dir string   // working folder of Command; "": that of the build, or this process's

	// Flags are settings of the system that are distinguished in reports. Each is
	// passed to the command in the form of FlagFormat, with {name} and {value}
	// replaced: as several arguments if the form has blanks. If a value is
	// env:NAME or file:PATH, it is a secret.
	Flags      []Flag
	FlagFormat string // "" is DefaultFlagFormat

	// Ready is when the system is ready for load: an http(s) URL that answers
	// with a status below 400, "port:N" or HOST:PORT that accepts connections,
	// or "log:TEXT", which its output contains. "": when every address in
	// Listen accepts connections.
	Ready       string
	Listen      []string      // addresses of the run's target, HOST:PORT
	ReadyWithin time.Duration // 0 is DefaultReadyWithin
	StopWithin  time.Duration // between TERM and KILL; 0 is DefaultStopWithin

	Memory  int64    // maximum of bytes it may use; 0: no limit
	CPUs    float64  // maximum of processors it may use; 0: no limit
	Engine  string   // "docker" or "podman"; "": the one installed
	Publish []string // ports of the image's container, as the engine takes them: 127.0.0.1:8200:8200
	RunArgs []string // further options of the engine's run: --network=host, --volume=...

	Git      string // folder of the repository it comes from: its facts go into the report
	Branch   string // of the revision; "": as Git or Build says
	Revision string // its revision in words, without a repository
	Build    *Build // what was built for this run; its facts take precedence over Git's

	Vars    string          // URL of expvar
	Metrics string          // URL of metrics in Prometheus's text format
	Names   []string        // which of their names are read: see newFilter
	Stages  []measure.Stage // what Metrics has about a run's events
	Header  http.Header     // for Vars and Metrics; its values are secrets
	GCLog   string          // a JVM's unified log; %p and * are wildcards
	JVMGC   bool            // make the JVM of Command write one, and read it

	Secrets []string          // further values that must not be in any output
	Output  func(line string) // gets each line of the output, without secrets; may be nil

	Logf func(format string, args ...any) // prints progress; may be nil

	// Launched is called with Kill as soon as something was started; may be
	// nil.
	Launched func(kill func())

	// Happened is called with what happened to the system: the pauses of its JVM's collector,
	// and its end if it ended by itself. It may be called while the system is read; may be nil.
	Happened func(name string, began time.Time, length time.Duration)

	// accept replaces the test of an address in tests of this package.
	accept func(ctx context.Context, addr string) error
}

// A Flag is a setting of the system under test.
type Flag struct{ Name, Value string }

// The defaults.
const (
	DefaultFlagFormat  = "-E {name}={value}"
	DefaultReadyWithin = time.Minute
	DefaultStopWithin  = 10 * time.Second
)
