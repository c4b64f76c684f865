package protocol

import (
	"context"
	"net/url"

	"carronade/load"
	"carronade/measure"
)

// KindCapabilities are what a Kind can do beyond its methods. A function that is nil is not there.
type KindCapabilities struct {
	// Presets are for a kind of which some options set others: a profile, or another client's
	// configuration file. They override defaults, and given options override them. A preset may be
	// an option of the kind or a setting of any workload (linger, max-in-flight), but not a secret.
	// The code that resolves a workload calls Presets before it makes a plan. Open applies those
	// that are options. given contains the names of the options that were given a value: presets
	// may depend on it.
	Presets func(u *url.URL, v Values, given map[string]bool) (set map[string]string, warnings []string, err error)
	// LimitsInFlight reports whether connections keep to the in-flight limit that was given also in
	// a closed loop, in which the engine's limit is the concurrency.
	LimitsInFlight func(v Values) bool
	// Unacknowledged reports, without a session, whether a run is never acknowledged (datagrams,
	// acks=0). The sessions of such runs are Unanswered.
	Unacknowledged func(u *url.URL, v Values) bool
	// Verifies says that events can be read back although the kind has no operation that reads (an
	// index that is queried). A run may then be asked to verify, and its session has a Source.
	Verifies bool
	// Groups says that several consumer groups can read what a round trip sends: see Spec.Groups.
	Groups bool
	// Check finds what is wrong with a Spec by itself, such as options that contradict each other,
	// without connecting. Open finds the same. A series of runs asks before the first one, so that
	// it does not end in the middle.
	Check func(s Spec) error
	// DefaultPort is the port of targets that name none: the code that starts the system waits for
	// that port.
	DefaultPort func(scheme string) string
	// Needs returns what a run takes of the machine, before it makes or connects anything: what is
	// certain to be taken, and rather too little than too much, since a run that fits must not be
	// refused. It must not take much itself.
	Needs func(s Spec) []Need
	// Stages are what the system counts of events behind their acknowledgement, in the order of their way. They are
	// reported if the run reads the system's metrics; the last one also as a share of the acked events over time.
	Stages []measure.Stage
	// Apart returns the target of one cell of a series that varies settings, with a name of the cell in the names of
	// what its runs create: cells that create it with different settings must not share it. It returns "" if cells can
	// share what these settings change.
	Apart     func(u *url.URL, varied []string, cell string) string
	Recorded  *Recorded // nil: a workload cannot be fitted to recorded traffic of the kind
	Inspector Inspector // nil: the kind cannot look at a system before a run
}

// Recorded is a format of files with traffic of a kind, one request a line.
type Recorded struct {
	About  string                 // what the files have: "requests of ..."
	Begins func(head []byte) bool // reports whether a file with this beginning has the format
	Target string                 // the usual address of a server on this machine, for the fitted workload
	Corpus string                 // the option that replays such a file; "": there is none
	New    func() Recording
}

// A Recording is what was counted of recorded traffic. It belongs to one goroutine.
type Recording interface {
	// Add counts a request, and returns the number of its events. It calls at with the time of each event that has
	// one, in nanoseconds since 1970. It keeps nothing of line.
	Add(line []byte, at func(nanoseconds int64)) (events int, err error)
	// Fit returns the settings of a workload that fit what was added, and what to say about each.
	Fit() []Fitted
}

// Fitted is a setting of a workload that fits recorded traffic.
type Fitted struct{ Name, Value, About string }

// SessionCapabilities are what a Session can do beyond its methods. A function that is nil is not
// there. All that ask the system return when their context ends.
type SessionCapabilities struct {
	// Unanswered says that no acknowledgements are received (datagrams, acks=0): only the number of
	// events sent is known.
	Unanswered bool
	// Pipeline returns what reads the events that are sent, each batch after it was acked. It is
	// there if the operation is a pipeline, and is called once, before the run.
	Pipeline func() (load.Follower, load.StagePlan)
	// Groups are the consumer groups that read what is sent, if the workload asks for some: each of them reads every
	// event. The session has no Source then.
	Groups []Group
	// Transactions are nil if events are not sent in transactions.
	Transactions Transactions
	// Encoding says when the bytes of the events are made; nil if the session sends none. It is
	// called before and after a run.
	Encoding func() *measure.Encoding
	// Brokers counts by broker.
	Brokers func() []measure.Client
	// Figures asks the system for the numbers that it reports about itself and that are worth
	// keeping next to the measured ones: its own rates, times and queues. It is called before, once
	// an interval during, and after a run, by one goroutine at a time and never on a sending
	// thread. If the system reports nothing, Figures returns no figures and no error.
	Figures Figures
	// Survey inspects the system once more when a run is over, so that Facts include its final
	// state (such as which broker leads which partition).
	Survey func(ctx context.Context) error
	// Leader returns the address of the server that leads the partition now, below 0 of the one
	// that leads most of them: the server whose failure is worth looking at.
	Leader func(ctx context.Context, partition int) (addr string, err error)
	// Finish ends what the session writes in addition to what it sends, such as a list of what was
	// acked. It is called once, when everything is completed. Its error is a problem of the run:
	// something that was requested could not be written.
	Finish func() error
	// Notice is something without which the result is easily misunderstood, in a few words: the
	// headline of the report begins with it. "": nothing.
	Notice func() string
	// Confirm asks the store behind the system how many of the sent events arrived there. It is
	// there if the user requested it, and is called once, when everything is completed. acked is
	// the number of events that the system acknowledged since Start, in all phases. Confirm waits,
	// for a bounded time, until the store's count no longer changes; when the context ends earlier
	// it returns what it knows, if anything.
	Confirm func(ctx context.Context, acked uint64) (*measure.Indexed, error)
}

// A Group is one of several consumer groups that read what a session sends, each of them all of it, from where the
// logs ended when the session was opened. Its source has a Seeker, and may deliver an event more than once.
type Group struct {
	Name   string
	Source load.Source
}

// Figures are the numbers that a system, or the machine, reports about itself now.
type Figures func(ctx context.Context) ([]measure.Figure, error)

// Transactions are those in which a session sends.
type Transactions interface {
	// Committed returns a source for a reader of committed events, from where the run
	// began; nil if the run does not verify. It has a Seeker.
	Committed() load.Source
	// EndTransactions ends the open transactions, after everything has been sent.
	EndTransactions()
	// Uncommitted reports, after EndTransactions, the events of each stream whose
	// transaction was aborted or, if aborted is false, the end of whose transaction is
	// not known.
	Uncommitted(note func(stream int32, first, events uint64, aborted bool))
}

// DefaultPort is the port of a kind's targets that name none; "" if it has no default.
func DefaultPort(k Kind, scheme string) string {
	if port := k.Capabilities().DefaultPort; port != nil {
		return port(scheme)
	}
	return ""
}

// Check finds what is wrong with a Spec by itself, as far as the kind can, without connecting.
func Check(k Kind, s Spec) error {
	if check := k.Capabilities().Check; check != nil {
		return check(s)
	}
	return nil
}
