package load

import (
	"context"
	"time"
)

// TargetCapabilities are what a Target can do beyond its methods. A function that is nil is not
// there. The engine asks once, before the run, and keeps the functions.
type TargetCapabilities struct {
	// Shares says that events need not stay in order: each lane can send every stream of its
	// thread. With a schedule, a batch then goes to the first lane that has room, so that a slow
	// answer on one connection does not delay what another could send. In all other respects,
	// streams belong to their clients.
	Shares bool

	// Connections returns how many connections of the clients that fire here the target begins to
	// use when it starts. With thousands of them that takes some tenths of a second: see Lead.
	Connections func() int
	// Connected returns how many connections there are at the moment. known is false if the
	// target cannot tell, such as one that has none, or whose library makes one for each request.
	// It is safe for concurrent use.
	Connected func() (n int, known bool)
	// Pending reports what the target waits for: one text per connection, with its pending work
	// and since when. It is called when nothing has changed for a long time, from any goroutine.
	Pending func() []string

	// OwnBatching is there if the lanes form batches and limit them, as a client library does. The
	// engine then fires events as they come due, without linger, and keeps at most inFlight
	// batches in flight on a lane, instead of the plan's bound. The lane accepts no more when it
	// is full.
	OwnBatching func() (inFlight int)
	Poller      Poller // nil: answers are read by goroutines of the target

	// Events is the number of events of a target that has a limited number of them, such as one
	// that reads a list of items; 0: no limit.
	Events uint64
	// LogOf returns the log (an index into Source.Logs) that a stream's events go to. nil: events
	// cannot be read back.
	LogOf   func(stream int32) int32
	Stamped bool // the payload of every event contains a stamp
	// AppendKey appends the key of an event of a stream. It returns false if the event has none,
	// or if the key is not known because batches are made from events encoded ahead. One goroutine
	// calls it, while the target sends.
	AppendKey func(dst []byte, stream int32, index uint64) ([]byte, bool)
	// AppendKeyHashes appends the hash of the key of each event of a batch. It is there if logs
	// may keep only the last event of each key. Events are then stamped, have keys, and the stamps
	// of arrivals contain the hashes of keys. It is safe for concurrent use.
	AppendKeyHashes func(dst []uint64, batch *Batch) []uint64
}

// LaneCapabilities are what a Lane can do beyond its methods. A function that is nil is not there.
type LaneCapabilities struct {
	// BatchGroup is there for batches so small that handling each one costs more than sending it.
	// Without a schedule, and when no single outcome is observed, the engine fires batch groups:
	// one Batch that represents several consecutive batches with the same number of events. Each
	// of them is still sent and acknowledged separately. Fire either accepts all of a batch group
	// or none of it.
	//
	// BatchGroup returns how many batches the lane would accept in one batch group now. Each has
	// the given number of events; the group begins with event first of the stream. Below 2, the
	// engine fires single batches.
	BatchGroup func(stream int32, first uint64, events int) int
	// Prepare allocates ahead what the first batch needs. The engine calls it before time 0 of a
	// run with a lead (see Lead), on the thread that owns the lane. All of thousands of lanes would
	// otherwise do so with the first events, and the collector would start at the same time.
	Prepare func()
}

// SourceCapabilities are what a Source can do beyond its methods. A function that is nil is not
// there.
type SourceCapabilities struct {
	Connected func() (n int, known bool) // as that of a Target
	Seeker    Seeker                     // nil: its position in each log is not known
	Answering Answering                  // nil: the system does not say that a log has no more events

	// Pause has the readers fetch nothing, or again. They stay connected, and members of a group keep their
	// partitions. What had been asked for may still be delivered. It may be called at any time, also before
	// Receive. The time without fetching is not a delay of the reader (Arrival.Earliest).
	Pause func(paused bool)
	// Gone asks the system, once Receive has returned, how many of the events delivered from each
	// log are no longer in it for a reason other than retention; 0 for events about which nothing
	// is known.
	Gone func(ctx context.Context) ([]uint64, error)
	// Skipped returns, for each log, the spans of offsets that reading skipped because they had
	// been removed before. It is called once Receive has returned.
	Skipped func() [][]Span
	// Blocked asks the system, which may hold back events that are in its logs, why it delivers
	// nothing more of logs that were not read to their ends; "" if nothing is known to hold events
	// back.
	Blocked func(ctx context.Context) (string, error)
	// WhyNothing is the reason why nothing has been read so far, as far as it is known: what the
	// system said last, that no partitions are assigned, or that reading began where the logs end.
	// "": it is not known. It is called when reading has ended, and may ask the system until the
	// context ends.
	WhyNothing func(ctx context.Context) string
	// Ready waits until reading has begun, if that takes others: until all partitions have a member of the group. Its
	// error says what it waited for. Receive is in progress, and the run has not begun: its time stands at 0.
	Ready   func(ctx context.Context) error
	Members Members // that divide the logs; none if their Number is 0
	// Undecoded says how events were counted without decoding them; "" if they were decoded.
	Undecoded func() string
	// Undetected are the names of the counts of a ledger that the source cannot show:
	// "duplicated", "reordered", "corrupted".
	Undetected []string
}

// Members divide the logs of a source among them, such as those of a consumer group.
type Members struct {
	Number int
	Of     func(lane int, log int32) int // the member that read an arrival
	// State returns Partitions, Rebalances and UnassignedS of a member: what does not follow from what it read.
	State func(member int) MemberResult
}

// A Poller is a Target that needs no goroutines to read answers: the sending threads
// wait in it, and it completes what arrives on the thread that is waiting. That saves a
// switch between two threads for each answer, which for small answers costs more than
// the answer itself. The thread also knows how long an answer may have waited for it
// (Outcome.Earliest).
type Poller interface {
	// Poll is called before Start for thread t of the given number. That thread will
	// wait in the target and drive the clients c with c mod of = t. A nil result means
	// that it cannot wait there.
	Poll(t, of int) PollWaiter
	// Threads returns how many sending threads the target prefers on a number of
	// processors, if the plan does not set the number and the threads wait in the
	// target. Answers then need no further threads, and the system under test may share
	// the processors.
	Threads(processors int) int
}

// A Seeker is a Source that knows its position in each log.
type Seeker interface {
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

// A Span is a range of offsets of a log, To excluded.
type Span struct{ From, To int64 }

// An Answering is a Source that knows when the system last said, in answer to a request, that a log has
// no more events than were delivered.
type Answering interface {
	// Emptied returns for each log when that was, from the start of the run; 0: the system has not said
	// so since the log's newest events, or it is not known. A log that is not read, or not any more, is
	// always as if it had just been said. It is called after Receive, and is safe for concurrent use.
	Emptied() []time.Duration
	// Patience returns for how long the system may wait for new events before it says so again.
	Patience() time.Duration
}
