package jobs

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"carronade/protocol"
	"carronade/units"
)

// A State is where a job is in its life.
type State string

// The states. The last four are final.
const (
	Queued      State = "queued"
	Running     State = "running"
	Done        State = "done"        // it made a judgement; the exit code says which
	Failed      State = "failed"      // the command failed, or the process could not be started
	Cancelled   State = "cancelled"   // see Queue.Cancel
	Interrupted State = "interrupted" // the server ended while the job ran
)

// Ended reports whether the state is final.
func (s State) Ended() bool { return s != Queued && s != Running }

// Everything is the system of a job that may load any system. It runs alone.
const Everything = "*"

// A Request is what a user submits. Its first three texts and the folder must
// be valid UTF-8; nothing in it may have a zero byte.
type Request struct {
	// System is the system under test. Jobs for one system run one at a time, in order. Two names
	// SCHEME://ADDRESS,ADDRESS are one system if the scheme and an address are the same. "" is a
	// name like any other.
	System string
	User   string   // who submits it
	Typed  string   // the line as typed, for lists of jobs
	Args   []string // carronade's arguments, without the program's name
	Dir    string   // working directory, an absolute path; "" is the folder files below the data folder
	// Env has entries NAME=VALUE, which are added to the environment of the
	// process. They are stored, so they must not have secrets: pass references to
	// files that only the user can read.
	Env []string
}

// A Job is a request and what became of it.
type Job struct {
	ID int64 // from 1, in the order of submission; never used again
	Request
	State                     State
	Submitted, Started, Ended time.Time // zero if it did not happen
	// Exit is the exit code of a job that ended, -1 if there is none: the process
	// was not started, a signal ended it, or the server was killed.
	Exit   int
	Reason string // why it failed, was cancelled or interrupted, in words; one line
}

// A Filter selects jobs. Its zero value selects all.
type Filter struct {
	System string  // "": of all systems
	User   string  // "": of all users
	States []State // nil: in all states
	Newest int     // at most that many, the newest; 0: all
}

// What may be wrong. Errors for users wrap one of them, and most are a
// *protocol.Error with a hint.
var (
	ErrNoJob    = errors.New("it was not submitted, or is no longer kept")
	ErrEnded    = errors.New("the job has ended")
	ErrLimit    = errors.New("the queue is full")
	ErrInvalid  = errors.New("the request is not valid")
	ErrClosed   = errors.New("the server is shutting down")
	ErrInUse    = errors.New("another carronade serve uses this folder")
	ErrReadOnly = errors.New("the data folder is read-only")
	ErrFull     = errors.New("the disk is full")
	ErrBusy     = errors.New("another program keeps the list of jobs locked")
	ErrDamaged  = errors.New("the list of jobs is damaged")
	ErrForeign  = errors.New("jobs.db belongs to another program")
	ErrNewer    = errors.New("a newer carronade wrote the list of jobs")
)

// mostRequest limits the texts of a request, in bytes.
const mostRequest = 64 << 10

// check returns an error if the request cannot be stored exactly, or not be
// passed to a process.
func (r *Request) check() error {
	invalid := func(format string, args ...any) error {
		return &protocol.Error{Doing: "queue the job", Err: fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...)), Hint: "correct it and submit it again"}
	}
	size := 0
	for _, t := range []struct{ name, text string }{{"the name of the system", r.System}, {"the name of the user", r.User}, {"the line", r.Typed}, {"the folder", r.Dir}} {
		size += len(t.text)
		if !utf8.ValidString(t.text) {
			return invalid("%s is not UTF-8", t.name)
		}
		if strings.Contains(t.text, "\x00") {
			return invalid("%s has a zero byte", t.name)
		}
	}
	if r.Dir != "" && !filepath.IsAbs(r.Dir) {
		return invalid("the folder %q is not an absolute path", r.Dir)
	}
	for i, a := range r.Args {
		size += len(a)
		if strings.Contains(a, "\x00") {
			return invalid("argument %d has a zero byte", i+1)
		}
	}
	for _, e := range r.Env {
		size += len(e)
		if strings.Contains(e, "\x00") {
			return invalid("a variable of the environment has a zero byte")
		}
		if strings.Index(e, "=") < 1 {
			return invalid("an entry of the environment is not NAME=VALUE")
		}
	}
	if size > mostRequest {
		return invalid("it has %s, and %s are allowed", units.FormatSize(int64(size)), units.FormatSize(mostRequest))
	}
	return nil
}
