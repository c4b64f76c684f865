package protocol

import (
	"context"
	"fmt"
)

// A Level says how much a Finding matters to a measurement.
type Level uint8

// The levels, from good to bad.
const (
	LevelOK      Level = iota // nothing is wrong
	LevelUnknown              // it could not be found out
	LevelNote                 // worth knowing; the numbers are right
	LevelWarning              // numbers would be worse, or others than expected
	LevelError                // a run would fail, or measure nothing
)

var levels = [...]string{"ok", "unknown", "note", "warning", "error"}

// String returns the level's name.
func (l Level) String() string {
	if int(l) < len(levels) {
		return levels[l]
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// MarshalText implements encoding.TextMarshaler: the name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Level) UnmarshalText(text []byte) error {
	for i, name := range levels {
		if name == string(text) {
			*l = Level(i)
			return nil
		}
	}
	return fmt.Errorf("unknown level %q", text)
}

// A Finding is the result of one check before a run. Its texts are for users: lower case,
// without a full stop.
type Finding struct {
	Check  string `json:"check"` // what was checked, in a word or two; the same for each finding of a check
	Level  Level  `json:"level"`
	Found  string `json:"found"`            // with its number
	Effect string `json:"effect,omitempty"` // on a measurement
	Fix    string `json:"mend,omitempty"`   // the command or setting that changes it
}

// An Inspection is what a Kind found out about a system.
type Inspection struct {
	Findings []Finding
	// Addresses are those that a run connects to first, HOST:PORT, also if nothing answers.
	Addresses []string
	// Connections is how many connections a run with these settings would make; 0 if it is
	// not known.
	Connections int
}

// An Inspector looks at a system before a run and finds what would disturb a measurement.
type Inspector interface {
	// Inspects reports whether an option has an effect on what Inspect does.
	Inspects(o *Option) bool
	// Inspect looks at the system. It sends no event and changes nothing, and returns when
	// its context ends, with what it knows by then. An error means that nothing could be
	// found out, because the system did not answer or refused the login; it is an *Error
	// if it comes with a hint.
	Inspect(ctx context.Context, s Spec) (Inspection, error)
}
