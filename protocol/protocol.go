// Package protocol defines what a kind of system is: a URL scheme, a table of options,
// and what can be opened for a run. It does not depend on any protocol. Package
// protocoltest contains the tests that each kind must pass.
package protocol

import (
	"context"
	"net/url"
	"time"

	"carronade/load"
	"carronade/measure"
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
}

// A Presetter is a Kind of which some options set others: a profile, or another
// client's configuration file. These presets override defaults, and given options
// override them. A preset may be an option of the kind or a setting of any workload
// (linger, max-in-flight), but not a secret. The code that resolves a workload calls
// Presets before it makes a plan. Open applies those that are options. given contains
// the names of the options that were given a value: presets may depend on it.
type Presetter interface {
	Presets(u *url.URL, v Values, given map[string]bool) (set map[string]string, warnings []string, err error)
}

// An InFlightLimiter is a Kind whose connections keep to the in-flight limit that was given
// also in a closed loop, in which the engine's limit is the concurrency.
type InFlightLimiter interface {
	LimitsInFlight(v Values) bool
}

// An Unacknowledger is a Kind some of whose runs are never acknowledged (datagrams, acks=0): it
// knows without a session. The sessions of such runs are Unanswered.
type Unacknowledger interface {
	Unacknowledged(u *url.URL, v Values) bool
}

// A Verifier is a Kind whose events can be read back although it has no operation that
// reads (an index that is queried): if Verifies returns true, a run may be asked to
// verify, and its session then has a Source.
type Verifier interface {
	Verifies() bool
}

// A Checker is a Kind that finds what is wrong with a Spec by itself, such as options that
// contradict each other, without connecting. Open finds the same. A series of runs asks before
// the first one, so that it does not end in the middle.
type Checker interface {
	Check(s Spec) error
}

// A DefaultPorter is a Kind with a default port for targets that name none: the code
// that starts the system waits for that port.
type DefaultPorter interface {
	DefaultPort(scheme string) string
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
type Error struct {
	Doing string // what was tried: "connect to 127.0.0.1:9092"; "" if Err says it all
	Err   error  // why it failed
	Hint  string // what to check or to enter, one sentence
}

// Error implements error.
func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return e.Doing
	case e.Doing == "":
		return e.Err.Error()
	}
	return e.Doing + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Placed is implemented by sending sides whose events can be read back: it maps what
// was sent to where it is found.
type Placed interface {
	// LogOf returns the log (an index into Source.Logs) that a stream's events go to.
	LogOf(stream int32) int32
	// Stamped reports whether the payload of every event contains a stamp.
	Stamped() bool
}

// Finite is implemented by sending sides with a limited number of events, such as those
// that read a list of items.
type Finite interface {
	// Events returns their number, 0 without a limit. It does not change.
	Events() uint64
}

// Keyed is implemented by sending sides whose events have keys, if it is known which
// event has which key.
type Keyed interface {
	// AppendKey appends the key of an event of a stream. It returns false if the event
	// has none, or if the key is not known because batches are made from events encoded
	// ahead. One goroutine calls it, while the target sends.
	AppendKey(dst []byte, stream int32, index uint64) ([]byte, bool)
}

// Seekable is implemented by sources that know their position in each log.
type Seekable interface {
	// Starts returns where reading began in each log, Positions the offset up to which
	// everything was delivered.
	Starts() []int64
	Positions() []int64
	// Ends asks the system where each log ends now, whether or not everything up to there may be read.
	Ends(ctx context.Context) ([]int64, error)
	// Heads asks the system where each log begins now: it has deleted what lay before
	// (retention).
	Heads(ctx context.Context) ([]int64, error)
}

// RemovalDetector is implemented by sources that can determine whether the events that
// they delivered still exist.
type RemovalDetector interface {
	// Gone asks the system, once Receive has returned, how many of the events delivered
	// from each log are no longer in it for a reason other than retention; 0 for events
	// about which nothing is known.
	Gone(ctx context.Context) ([]uint64, error)
}

// SkipReporter is implemented by sources that know what they could not read because it
// had been removed before.
type SkipReporter interface {
	// Skipped returns, for each log, the spans of offsets that reading skipped. It is
	// called once Receive has returned.
	Skipped() [][]Span
}

// Undetecting is implemented by sources that do not show all that a ledger counts.
type Undetecting interface {
	// Undetected returns the names of those counts in a report: "duplicated", "reordered", "corrupted".
	Undetected() []string
}

// BlockReporter is implemented by sources whose system may hold back events that are in its logs.
type BlockReporter interface {
	// Blocked asks the system why it delivers nothing more of logs that were not read to their ends; "" if
	// nothing is known to hold events back.
	Blocked(ctx context.Context) (string, error)
}

// A Span is a range of offsets of a log, To excluded.
type Span struct{ From, To int64 }

// Compacted is implemented by sending sides whose logs may keep only the last event of
// each key.
type Compacted interface {
	// Compacted reports whether they do. If so, events are stamped, have keys, and the
	// stamps of arrivals contain the hashes of keys.
	Compacted() bool
	// AppendKeyHashes appends the hash of the key of each event of a batch. It is safe
	// for concurrent use.
	AppendKeyHashes(dst []uint64, batch *load.Batch) []uint64
}

// Transactional is implemented by sessions that may send in transactions.
type Transactional interface {
	// Committed returns a source for a reader of committed events, from where the run
	// began; nil without transactions, or if the run does not verify. It is a
	// Seekable.
	Committed() load.Source
	// EndTransactions ends the open transactions, after everything has been sent.
	EndTransactions()
	// Uncommitted reports, after EndTransactions, the events of each stream whose
	// transaction was aborted or, if aborted is false, the end of whose transaction is
	// not known.
	Uncommitted(note func(stream int32, first, events uint64, aborted bool))
}

// Metered is implemented by sessions that count by broker.
type Metered interface {
	Brokers() []measure.Client
}

// A FigureSource is a Session whose system reports numbers about itself that are worth
// keeping next to the measured ones: its own rates, times and queues.
type FigureSource interface {
	// Figures asks the system for its figures. It is called before, once an interval
	// during, and after a run, by one goroutine at a time and never on a sending
	// thread; it must return when its context ends. If the system reports nothing,
	// Figures returns no figures and no error.
	Figures(ctx context.Context) ([]measure.Figure, error)
}

// A Surveyor is a Session that inspects its system once more when a run is over, so
// that Facts include its final state (such as which broker leads which partition). It
// must return when its context ends.
type Surveyor interface {
	Survey(ctx context.Context) error
}

// A Leading session knows which server of its system leads a partition: the one whose failure is
// worth looking at.
type Leading interface {
	// Leader returns the address of the server that leads the partition now, below 0 of the one
	// that leads most of them. It must return when its context ends.
	Leader(ctx context.Context, partition int) (addr string, err error)
}

// A Finisher is a Session that writes something besides what it sends, such as a list of what
// was acked. Finish is called once, when everything is completed. Its error is a problem of the
// run: something that was requested could not be written.
type Finisher interface {
	Finish() error
}

// A Noticer is a Session that may have found something without which the result is easily
// misunderstood: the headline of the report begins with it. Notice returns it in a few
// words, "" for nothing.
type Noticer interface {
	Notice() string
}

// NothingRead is a load.Source that knows why nothing has been read so far.
type NothingRead interface {
	load.Source
	// WhyNothing is the reason, as far as it is known: what the system said last, that no partitions
	// are assigned, or that reading began where the logs end. "": it is not known. It is called
	// when reading has ended, and may ask the system until the context ends.
	WhyNothing(ctx context.Context) string
}

// Undecoded is a load.Source that may count events without decoding them.
type Undecoded interface {
	load.Source
	// Undecoded says how events were counted instead; "" if they were decoded.
	Undecoded() string
}

// Encoded is a Session that knows when the bytes of its events are made. Encoding returns
// nil if it sends none. It is called before and after a run.
type Encoded interface {
	Encoding() *measure.Encoding
}

// Unanswered is implemented by sessions that may receive no acknowledgements
// (datagrams, acks=0): when it reports true, only the number of events sent is known.
type Unanswered interface {
	Unanswered() bool
}

// Pending is a load.Target that can report what it waits for: one text per connection,
// with its pending work and since when. It is called when nothing has changed for a
// long time, from any goroutine.
type Pending interface {
	Pending() []string
}

// A Confirmer is a Session that can ask the store behind the system how many of the
// sent events arrived there.
type Confirmer interface {
	// Confirm is called once, when everything is completed. acked is the number of
	// events that the system acknowledged since Start, in all phases. Confirm waits,
	// for a bounded time, until the store's count no longer changes; when the context
	// ends earlier it returns what it knows. It returns nil and no error if the user
	// did not request it.
	Confirm(ctx context.Context, acked uint64) (*measure.Indexed, error)
}
