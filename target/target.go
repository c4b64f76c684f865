// Package target says what a kind of system is: a URL scheme, a table of
// options, and what can be opened for a run. It knows no protocol. The suite
// that each kind passes is in targettest.
package target

import (
	"context"
	"net/url"
	"time"

	"carronade/load"
	"carronade/measure"
)

// A Kind is one protocol. A Kind has no state; each run opens its own Session.
type Kind interface {
	// Name is the scheme's family, such as "kafka".
	Name() string
	// Schemes lists the URL schemes it answers to.
	Schemes() []string
	// Ops lists what it can do, the default first: "produce", "consume", ...
	Ops() []string
	// Options is its table of options, in the order of help and documents.
	Options() []Option
	// Open connects, looks around and prepares, so that a wrong address or
	// password is found here and not in the run. An error is an *Error where
	// there is a hint to give.
	Open(ctx context.Context, s Spec) (Session, error)
}

// A Presetter is a Kind of which some options stand for others: a profile, or
// another client's configuration file. What they set ranks between what
// somebody gave and the defaults, and may be an option of the kind or a
// setting of any workload (linger, max-in-flight). Whoever resolves a workload
// asks for them before it makes a plan; secrets are not among them. Open
// applies those that are options by itself. given names the options that
// somebody gave a value: what is preset may depend on it.
type Presetter interface {
	Presets(u *url.URL, v Values, given map[string]bool) (set map[string]string, warnings []string, err error)
}

// A Verifier is a Kind whose events can be read back though no operation of its
// own reads (an index that is queried): where Verifies reports true, a run may
// be told to verify, and its session then has a Source.
type Verifier interface {
	Verifies() bool
}

// A Ported is a Kind that connects to a port of its own where a target names
// none: whoever starts the system waits for that one.
type Ported interface {
	DefaultPort(scheme string) string
}

// A Session is a target opened for one run.
type Session interface {
	// Target is the firing side, nil when the operation only consumes.
	Target() load.Target
	// Source is the consuming side, nil when the operation only fires.
	Source() load.Source
	// Facts are what was found out about the system, for the report: short
	// names, JSON-encodable values. It may be asked before and after a run.
	Facts() map[string]any
	// Warnings are words for people about what was found.
	Warnings() []string
	// Close ends all connections.
	Close() error
}

// A Spec is what to open.
type Spec struct {
	URL     *url.URL
	Op      string
	Options Values
	Given   map[string]bool // names of the options that somebody set; the others hold their defaults
	Seed    uint64
	RunID   uint64 // random, for stamps

	// How it will be fired, where a target prepares differently.
	Scheduled   bool
	BatchEvents int
	MaxInFlight int
	Concurrency int
	Linger      time.Duration
	Verify      bool // stamp events where they have room
	RoundTrip   bool
	Count       uint64        // events wanted; 0: no limit
	Most        uint64        // events that will be fired at most, warm-up included; 0: nobody knows
	Length      time.Duration // how long firing goes on at most, warm-up included; 0: nobody knows
	Clients     int

	Logf func(format string, args ...any) // words for the progress log; never nil
}

// An Error is a failure with the way out.
type Error struct {
	Doing string // what was tried: "connect to 127.0.0.1:9092"
	Err   error  // why it failed
	Hint  string // what to check or to type, one sentence
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Doing
	}
	return e.Doing + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Placed is implemented by firing sides whose events can be read back: it ties
// what was fired to where it is found.
type Placed interface {
	// LogOf is the log (an index into Source.Logs) a stream's events go to.
	LogOf(stream int32) int32
	// Stamped reports whether every event carries a stamp in its own bytes.
	Stamped() bool
}

// Keyed is implemented by firing sides whose events have keys, where it is known
// which event has which.
type Keyed interface {
	// AppendKey appends the key of an event of a stream. False: it has none, or
	// nobody can tell, since batches are made of what was encoded ahead. It is
	// called while the target fires, by one goroutine.
	AppendKey(dst []byte, stream int32, index uint64) ([]byte, bool)
}

// Seekable is implemented by sources that know where in each log they are.
type Seekable interface {
	// Starts is where reading began, Positions up to where everything was
	// delivered.
	Starts() []int64
	Positions() []int64
	// Ends asks the system where each log ends now.
	Ends(ctx context.Context) ([]int64, error)
	// Heads asks the system where each log begins now: what lay before was
	// deleted by it (retention).
	Heads(ctx context.Context) ([]int64, error)
}

// Lasting is implemented by sources that can tell whether what they delivered
// is still there.
type Lasting interface {
	// Gone asks the system, once Receive has returned, how many of the events
	// that were delivered from each log are not in it any more, by another way
	// than retention: 0 of those of which nothing is known.
	Gone(ctx context.Context) ([]uint64, error)
}

// Skipping is implemented by sources that know what they could not read, since it
// had been removed before.
type Skipping interface {
	// Skipped is, of each log, what lay between where reading was and where it
	// went on. It is asked once Receive has returned.
	Skipped() [][]Span
}

// A Span is the offsets of a log from one on up to another.
type Span struct{ From, To int64 }

// Compacted is implemented by firing sides whose logs may keep no more than the
// last event of each key.
type Compacted interface {
	// Compacted reports whether they do. Then events are stamped, have keys, and
	// the stamps of arrivals carry the hashes of keys.
	Compacted() bool
	// AppendKeyHashes appends the hash of the key of each event of a batch. It is
	// called by several goroutines at once.
	AppendKeyHashes(dst []uint64, batch *load.Batch) []uint64
}

// Transactional is implemented by sessions that may fire in transactions.
type Transactional interface {
	// Committed is what a reader of committed events reads, from where the run
	// began; nil where there are no transactions, or nobody wants to verify. It is a
	// Seekable.
	Committed() load.Source
	// Conclude ends the transactions that are open, once nothing is fired any more.
	Conclude()
	// Uncommitted tells, after Conclude, of the events of each stream whose
	// transaction was aborted, or, where aborted is false, whose transaction's end
	// nobody knows.
	Uncommitted(note func(stream int32, first, events uint64, aborted bool))
}

// Metered is implemented by sessions that count by broker.
type Metered interface {
	Brokers() []measure.Client
}

// A FigureSource is a Session whose system says something of itself that is worth
// keeping beside what was measured: its own rates, times and queues.
type FigureSource interface {
	// Figures asks the system for its figures. It is asked before, once an
	// interval during, and after a run, by one goroutine at a time and never on
	// a firing thread; it must give up with its context. A system that tells
	// nothing now answers no figures, which is no error.
	Figures(ctx context.Context) ([]measure.Figure, error)
}

// A Surveyor is a Session that looks at its system once more when a run is
// over, so that Facts tell how it was left (which broker leads what by then).
// It must give up with its context.
type Surveyor interface {
	Survey(ctx context.Context) error
}

// Unanswered is implemented by sessions that may have nothing acknowledged
// (datagrams, acks=0): when it reports true, sent events are all that is known.
type Unanswered interface {
	Unanswered() bool
}

// Pending is a load.Target that can say what it waits for: of each connection what it
// has in hand and since when, a text each. It is asked when nothing has moved for long,
// from any goroutine.
type Pending interface {
	Pending() []string
}

// A Confirmer is a Session that can ask, past the system, how much of what was
// fired arrived in the store behind it.
type Confirmer interface {
	// Confirm is called once, when everything is completed: acked is how many
	// events the system said it accepted since Start, all phases together. It
	// waits, for a bounded time, until the store's count stands still; when the
	// context ends earlier it answers with what it knows. Nil without an error:
	// nobody asked for it.
	Confirm(ctx context.Context, acked uint64) (*measure.Indexed, error)
}
