package sut

import (
	"context"
	"net/http"
	"time"

	"carronade/internal/checkout"
)

// A Spec is the system under test, as somebody asked for it. One of Command,
// PID, Container and Image is set; none is for a system on another machine, of
// which the report has its revision (Git) and what it tells itself (Vars,
// Metrics, GCLog).
type Spec struct {
	// Command is a program and its arguments, in one text: words are parted
	// by blanks, quotes and backslashes keep blanks, and nothing else is
	// special; who needs a shell writes sh -c '...'. {tree}, {revision}, {branch}
	// and {image} are replaced by what was built (Build).
	Command   string
	PID       int      // a process that runs already; it and its descendants are watched
	Container string   // the name or id of a container that runs already
	Image     string   // an image to run; {image} is the one that was built
	Args      []string // of the image's own program

	Env []string // NAME=VALUE for what is started; the value may be env:NAME or file:PATH, and is a secret then
	Dir string   // working folder of Command; "": that of the build, or this process's

	// Flags are settings of the system that are distinguished in reports. Each is
	// handed to the command in the form of FlagFormat, {name} and {value}
	// replaced: as arguments of their own where the form has blanks. A
	// value may be env:NAME or file:PATH, and is a secret then.
	Flags      []Flag
	FlagFormat string // "" is DefaultFlagFormat

	// Ready is when the system may be fired at: an http(s) URL that answers
	// with a status below 400, "port:N" or HOST:PORT that accepts connections, or
	// "log:TEXT" which its output holds. "": when every address in Listen accepts
	// connections.
	Ready       string
	Listen      []string      // addresses of the run's target, HOST:PORT
	ReadyWithin time.Duration // 0 is DefaultReadyWithin
	StopWithin  time.Duration // between TERM and KILL; 0 is DefaultStopWithin

	Memory  int64    // most bytes it may use; 0: no limit
	CPUs    float64  // most processors' time it may use; 0: no limit
	Engine  string   // "docker" or "podman"; "": whichever is there
	Publish []string // ports of the image's container, as the engine takes them: 127.0.0.1:8200:8200
	RunArgs []string // further options of the engine's run: --network=host, --volume=...

	Git   string          // folder of the repository it comes from: its facts go into the report
	Build *checkout.Build // what was built for this run; its facts take precedence over Git's

	Vars    string      // URL of expvar
	Metrics string      // URL of metrics in Prometheus's text format
	Names   []string    // which of their names are told: see scrape.NewFilter
	Header  http.Header // for Vars and Metrics; what is in it is secret
	GCLog   string      // a JVM's unified log; %p and * stand for anything
	JVMGC   bool        // have the JVM of Command write one, and read it

	Secrets []string          // further values that must not be in anything told
	Output  func(line string) // each line of what is started, without secrets; nil: nobody looks

	Logf func(format string, args ...any) // words for the progress log; nil: none

	// Launched is called as soon as something was started, with Kill; nil: nobody
	// wants to know.
	Launched func(kill func())

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
