// Package protocol defines what a kind of system is: a URL scheme, a table of options,
// and what can be opened for a run. It does not depend on any protocol. Package
// protocoltest contains the tests that each kind must pass.
package protocol

import (
	"context"
	"net/url"
	"time"

	"carronade/internal/advice"
	"carronade/load"
)

// A Kind is one protocol. A Kind has no state; each run opens its own Session.
type Kind interface {
	// Name returns the name of the scheme's family, such as "kafka".
	Name() string
	// Schemes returns the URL schemes of the kind.
	Schemes() []string
	// Ops returns its operations, the default first: "produce", "consume", ...
	Ops() []string
	// Options returns its table of options, in the order of help and documents.
	Options() []Option
	// Open connects, inspects the system and prepares, so that a wrong address or
	// password is found here and not in the run. An error is an *Error if it comes with
	// a hint.
	Open(ctx context.Context, s Spec) (Session, error)
	// Capabilities returns what else the kind can do.
	Capabilities() KindCapabilities
}

// A Session is a target opened for one run.
type Session interface {
	// Target returns the sending side, nil when the operation only consumes.
	Target() load.Target
	// Source returns the consuming side, nil when the operation only sends.
	Source() load.Source
	// Facts returns what was found out about the system, for the report: short names,
	// JSON-encodable values. It may be called before and after a run.
	Facts() map[string]any
	// Warnings returns messages for the user about what was found.
	Warnings() []string
	// Close ends all connections.
	Close() error
	// Capabilities returns what else the session can do, always the same.
	Capabilities() SessionCapabilities
}

// A Spec describes what to open.
type Spec struct {
	URL     *url.URL
	Op      string
	Options Values
	Given   map[string]bool // names of the options that were set; the others have their defaults
	Seed    uint64
	RunID   uint64 // random, for stamps

	// How events will be sent, for targets that prepare accordingly.
	Scheduled   bool
	BatchEvents int
	MaxInFlight int
	Concurrency int
	Linger      time.Duration
	Verify      bool // stamp events that have room for a stamp
	RoundTrip   bool
	Groups      int           // consumer groups that read what is sent, each of them all of it; 0: there is one reader, or none
	Members     int           // of each group, for each topic; at least 1
	Count       uint64        // number of events requested; 0: no limit
	Most        uint64        // maximum number of events, warm-up included; 0: not known
	Length      time.Duration // maximum duration of sending, warm-up included; 0: not known
	Clients     int
	Portion     load.Portion // the clients that this process connects, if there are several generators; the option has the number of all

	// Room is what the run may take of the machine: for what is known only when the system has answered.
	Room Room

	Logf func(format string, args ...any) // writes to the progress log; never nil
	// Happened keeps that something happened which may explain what is measured then, such as
	// "connection lost" or "leader changed", in the report; may be nil. Safe for concurrent use.
	// Only rare events may call it. A length of 0 is none, or not known.
	Happened func(name string, began time.Time, length time.Duration)
}

// An Error is a failure with a hint how to resolve it.
type Error = advice.Error
