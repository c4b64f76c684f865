package load

import "time"

// A Batch is what travels to the system in one piece and is answered in one
// piece. Its events are consecutive in its stream: the events First,
// First+1, ... First+Events-1 of the stream.
//
// All times are offsets from the start of the run.
type Batch struct {
	Seq     uint64 // unique within the run's lane, counting from 0; kept over re-firing
	First   uint64 // index in the stream of the first event
	Stream  int32
	Events  int32
	Attempt int32 // 0, or how many times it was fired before (Plan.Retry)
	Phase   int32 // the engine's own index of the phase the events belong to

	// DueFirst and DueLast are when the first and the last event were due.
	// Both are -1 when nothing schedules the run.
	DueFirst, DueLast time.Duration
	Ready             time.Duration // its batch is full, or its linger over
	Free              time.Duration // the in-flight bound had room; a lane may raise it to when its connection could take bytes again

	// Batches is how many batches this one stands for: above 1 it is a batch group (see
	// BatchGrouper), whose Events and Bytes are those of all of them together. 0 is
	// 1.
	Batches int32

	// Bytes is the size of the events (what somebody gave to be carried, before
	// compression). The lane sets it in Fire.
	Bytes int64
	// FirstSent is when an earlier attempt (Attempt > 0) first wrote a byte, -1
	// when none did; the engine sets it.
	FirstSent time.Duration
}

// An Outcome is what became of a batch. Acked + Failed + Unknown = Events. What
// became of a batch group is told by one outcome or by several, each for
// consecutive batches of one fate and with the same times: Seq and First are
// then the first one's, Batches says how many, and Events, Bytes and the counts
// are of all of them.
type Outcome struct {
	Batch
	Lane int32 // ID of the lane it was fired on

	Sent time.Duration // first byte handed to the system; -1 when nothing was written
	Done time.Duration // the answer was read, or hope was given up

	// Earliest is the earliest moment at which the answer can have arrived. Between
	// it and Done it may have waited for its reader, which was busy or was not
	// given a processor. 0: not before Done, as far as is known.
	Earliest time.Duration

	Acked, Failed, Unknown int32

	Class   Class  // of what failed or is unknown
	Status  int16  // the status code of the answer (of HTTP, say); 0: there was none
	Text    string // the system's or the connection's own words about it
	Retries int32  // the lane's own attempts beyond the first
	Wire    int64  // bytes on the wire for this batch, all attempts together

	Place int64  // where the system put it (the first event's offset in its log); -1 when it did not say
	Sum   uint32 // checksum under which it can be found again; 0 when there is none
}

// Class is why events failed, or why nothing certain is known of them.
type Class uint8

// The classes of failure.
const (
	OK           Class = iota
	Timeout            // no answer in time, or the system said that it timed out
	Refused            // no connection, or the connection was lost
	Throttled          // the system asked for less
	Rejected           // the system judged the events and did not take them
	Protocol           // an answer that makes no sense, or a version that does not fit
	Canceled           // given up by us: the run ended
	TooLarge           // larger than the system takes
	Unauthorized       // not allowed, or not authenticated
	classes
)

var classNames = [classes]string{"ok", "timeout", "refused", "throttled", "rejected", "protocol", "canceled", "too-large", "unauthorized"}

// String returns the word used in reports, such as "too-large".
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "invalid"
}

// Texts of outcomes for what happens in every protocol. Reports count failures
// by their text, so equal ones have to be equal to the letter.
const (
	TextUnwritten  = "the run ended before it was written"  // Canceled
	TextUnanswered = "the run ended before an answer came"  // Canceled
	TextNoAnswer   = "no answer within the request timeout" // Timeout
	TextHungUp     = "the server closed the connection"     // Refused
)

// A Lane is the engine's connection to one place: an independent sender, which is a
// connection or the client of a library. One goroutine,
// the sending thread that owns it, makes all calls. Nothing here blocks.
type Lane interface {
	// ID is unique in the run, small, and never changes.
	ID() int
	// Room returns how many events the next batch of the stream may carry; the
	// engine never fires more. Zero: the stream cannot be fired now; the lane
	// calls Sink.Ready when it can.
	Room(stream int32, first uint64) int
	// Fire takes batches in order and returns how many it took. It sets the
	// Bytes of those. Fewer than given: the lane is full, and calls
	// Sink.Ready when there is room again. Every batch taken is completed
	// exactly once.
	Fire(batches []Batch) (taken int)
	// Flush writes what Fire took. Lanes may write earlier.
	Flush()
	// Close gives up: when it returns, every batch taken is completed: those
	// written as Unknown, those never written as Failed (Canceled). The
	// engine has waited for answers before.
	Close() error
}

// A BatchGrouper is a Lane for batches so small that handling them one by one would
// cost more than sending them. Where nothing schedules a run and nobody looks
// at single outcomes, the engine fires batch groups on it: one Batch that stands for
// Batches consecutive ones of equal make-up, which travel, and are answered, one
// by one all the same. Fire takes a batch group whole or not at all.
type BatchGrouper interface {
	Lane
	// BatchGroup returns how many batches of so many events each, the first of them
	// with event first of the stream, the lane would take in one batch group now.
	// Below 2 the engine fires single batches.
	BatchGroup(stream int32, first uint64, events int) int
}

// A Sink is where lanes say what became of their batches. Safe for concurrent
// use; calls of one lane must not overlap.
type Sink interface {
	// Now is the offset from the start of the run, by the monotonic clock.
	Now() time.Duration
	// Complete hands over outcomes; the slice is copied. A lane may collect
	// outcomes and complete them in one call, which costs less.
	Complete(out []Outcome)
	// Ready says that a lane which was full, or a stream which had no room,
	// may be tried again, and since when.
	Ready(lane int, at time.Duration)
}

// A Target is an opened system, made for one run. Streams are the sequences in
// which events keep their order (a log by a client, say); each
// belongs to one client, and all of a client's lanes are driven by one thread.
type Target interface {
	// Partitioner says how events are divided over streams.
	Partitioner() Partitioner
	// Client returns which client a stream belongs to, counting from 0.
	Client(stream int32) int
	// Clients is how many there are.
	Clients() int
	// Start is called once, before anything is fired, with the run's sink.
	Start(sink Sink)
	// Route returns the lane that serves the stream now, nil while there is
	// none (a partition without leader). It is called by the client's thread,
	// and may answer differently each time. When a stream gets a lane after
	// nil, the target calls Sink.Ready(-1, at).
	Route(stream int32) Lane
	// Wire returns bytes written and read so far, all lanes together.
	Wire() (written, read uint64)
}

// A Sharer is a Target whose events have no order to keep: each lane can send every
// stream of its thread. Under a schedule a batch then goes to the first lane that has
// room, so that a slow answer on one connection does not keep back what another could
// send. Streams stay those of their clients in everything else.
type Sharer interface {
	Target
	Shares() bool
}

// A SelfBatcher is a Target whose lanes make batches and bound by themselves, as a
// client library does. The engine then hands over events as they come due,
// without a linger of its own, and keeps at most InFlight batches in flight on a
// lane instead of the plan's bound: the lane refuses more when it is full.
type SelfBatcher interface {
	Target
	OwnBatching() (inFlight int)
}
