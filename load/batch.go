package load

import (
	"math"
	"time"
)

// A Batch is sent in one piece and acknowledged in one piece. Its events are
// consecutive in its stream: First, First+1, ... First+Events-1.
//
// All times are offsets from the start of the run.
type Batch struct {
	Seq     uint64 // unique within the run's lane, counting from 0; kept by retries
	First   uint64 // index in the stream of the first event
	Stream  int32
	Events  int32
	Attempt int32 // number of earlier attempts (Plan.Retry)
	Phase   int32 // the engine's index of the phase that the events belong to

	// DueFirst and DueLast are when the first and the last event were due.
	// Both are -1 when nothing schedules the run.
	DueFirst, DueLast time.Duration
	Ready             time.Duration // when the batch was full or its linger was over
	Free              time.Duration // when the in-flight bound had room; a lane may raise it to when its connection accepted bytes again

	// Batches is the number of batches that this one represents; 0 means 1. Above 1 it
	// is a batch group (see LaneCapabilities), and Events and Bytes are the sums over all
	// of them.
	Batches int32

	// Bytes is the size of the events before compression, without the protocol's
	// overhead. The lane sets it in Fire.
	Bytes int64
	// Withheld says that the target has no batch of this number of events, such as a part of a recorded
	// request. The lane sets it in Fire, and does not complete the batch. Its events are unsent.
	Withheld bool
	// FirstSent is when an earlier attempt (Attempt > 0) first wrote a byte, -1
	// when none did; the engine sets it.
	FirstSent time.Duration
}

// An Outcome is the result of a batch. Acked + Failed + Unknown = Events. A batch
// group has one outcome or several, each for consecutive batches with the same result
// and the same times: Seq and First are then those of the first batch, Batches is
// their number, and Events, Bytes and the counts are their sums.
type Outcome struct {
	Batch
	Lane int32 // ID of the lane that it was fired on

	Sent time.Duration // when the first byte was handed to the operating system; -1 when nothing was written
	Done time.Duration // when the answer was read, or the lane gave up

	// Earliest is the earliest moment at which the answer can have arrived. Between
	// Earliest and Done, the answer may have waited for a reader that was busy or had
	// no processor. 0: not known to be before Done.
	Earliest time.Duration

	// Unwritten is how long the generator's own code may have kept the batch between Sent
	// and the write, while the system would have taken it. Except at full speed, lower bounds
	// leave it out.
	Unwritten time.Duration

	// Late is how long the lateness of other events of the run may have delayed these; the engine sets it.
	Late time.Duration

	Acked, Failed, Unknown int32
	Final                  bool // failed events are not fired again (Plan.Retry): the protocol says that it would be of no use

	Class   Class  // why events failed or are unknown
	Status  int16  // the answer's status code (HTTP); 0: none
	Text    string // error text of the system or the connection
	Retries int32  // attempts of the lane itself beyond the first
	Counted int32  // the interval that counts it (Snapshot.Number); the engine sets it
	Wire    int64  // bytes on the wire for this batch, all attempts together
	Read    int64  // bytes of events that the answer brought, in addition to Bytes: the events are reads

	Place int64  // where the system stored it (the first event's offset in its log); -1 when the answer does not contain it
	Sum   uint32 // checksum by which it can be found again; 0: none
}

// Class is why events failed or are unknown.
type Class uint8

// The classes of failure.
const (
	OK           Class = iota
	Timeout            // no answer in time, or the system said that it timed out
	Refused            // no connection, or the connection was lost; of unknown events the engine makes it Disconnected
	Throttled          // the system asked for a lower rate
	Rejected           // the system refused the events as invalid
	Protocol           // an invalid answer, or an unsupported version
	Canceled           // the run ended first
	TooLarge           // larger than the system accepts
	Unauthorized       // not allowed, or not authenticated
	Disconnected       // unknown: the connection was lost before an answer came
	classes
)

// OfUnknown returns the class of events without a certain answer: nothing refused what may have been
// written before the connection was lost.
func (c Class) OfUnknown() Class {
	if c == Refused {
		return Disconnected
	}
	return c
}

var classNames = [classes]string{"ok", "timeout", "refused", "throttled", "rejected", "protocol", "canceled", "too-large", "unauthorized", "disconnected"}

// String returns the name used in reports, such as "too-large".
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "invalid"
}

// Texts of outcomes that occur in every protocol. Reports group failures by text, so
// all targets must use these.
const (
	TextUnwritten        = "the run ended before it was written"  // Canceled
	TextUnanswered       = "the run ended before an answer came"  // Canceled
	TextNoAnswer         = "no answer within the request timeout" // Timeout
	TextConnectionClosed = "the server closed the connection"     // Refused
)

// A Lane sends to one place independently of other lanes: a connection, or the client
// of a library. All calls come from one goroutine: the sending thread that owns the
// lane. Only Close may block.
type Lane interface {
	// ID is unique in the run, small and constant.
	ID() int
	// Room returns how many events the next batch of the stream may carry; the engine
	// never fires more. Zero: the lane cannot accept events of the stream now, and
	// calls Sink.Ready when it can. Below zero: the stream has no more events, as the
	// plan's Gate also says.
	Room(stream int32, first uint64) int
	// Fire accepts batches in order, sets their Bytes, and returns how many it
	// accepted. If that is fewer than given, the lane is full and calls Sink.Ready when
	// it has room again. Every accepted batch is completed exactly once, except those withheld.
	Fire(batches []Batch) (taken int)
	// Flush writes what Fire accepted. A lane may write earlier.
	Flush()
	// Close completes every accepted batch before it returns: those that were written
	// as Unknown, others as Failed (Canceled). The engine has already waited for
	// answers.
	Close() error
	// Capabilities returns what else the lane can do, always the same.
	Capabilities() LaneCapabilities
}

// A Sink receives the outcomes of batches from lanes. It is safe for concurrent use,
// but calls of one lane must not overlap.
type Sink interface {
	// Now is the offset from the start of the run, by the monotonic clock.
	Now() time.Duration
	// Complete passes outcomes to the engine, which copies the slice. A lane may
	// collect outcomes and complete them in one call, which costs less.
	Complete(out []Outcome)
	// Ready reports that a lane that was full, or a stream that had no room, has had
	// room since at.
	Ready(lane int, at time.Duration)
}

// A Target is a system opened for one run. Streams are the sequences in which events
// keep their order (such as a log written by a client). Each belongs to one client, and
// one thread drives all lanes of a client.
type Target interface {
	// Partitioner returns how events are divided among streams.
	Partitioner() Partitioner
	// Client returns which client a stream belongs to, counting from 0.
	Client(stream int32) int
	// Clients returns the number of clients.
	Clients() int
	// Start is called once, before anything is fired, with the run's sink.
	Start(sink Sink)
	// Route returns the lane that serves the stream now, nil while it has none (a
	// partition without leader). The client's thread calls it, and the result may
	// change between calls. When a stream gets a lane after nil, the target calls
	// Sink.Ready(-1, at).
	Route(stream int32) Lane
	// Wire returns bytes written and read so far, all lanes together.
	Wire() (written, read uint64)
	// Capabilities returns what else the target can do, always the same.
	Capabilities() TargetCapabilities
}

// mostGroup limits the batches of a group: enough to make the cost per group
// negligible, and few enough that the thread reads its inbox often.
const mostGroup = 4096

// mayGroup reports whether batches may be fired in groups. They may not if a schedule
// gives each batch a due time, or if single outcomes matter (ledger, gate, retries).
func (t *thread) mayGroup() bool {
	p := &t.run.plan
	return p.Schedule == nil && p.BatchEvents > 0 && p.Gate == nil && t.run.mix == nil && p.Retry == 0 && p.Observe == nil
}

// composeGroup makes one batch group of a stream without a schedule. n is 0 when the
// lane or the bound allows only single batches now.
func (t *thread) composeGroup(s *stream, ls *laneState, now time.Duration) (n, phase, claimed int, exhausted bool) {
	if ls.batchGroup == nil || !t.grouped {
		return 0, 0, 0, false
	}
	p := &t.run.plan
	most := min(t.room(ls), mostGroup, math.MaxInt32/p.BatchEvents)
	switch {
	case p.Concurrency > 0:
		most = min(most, (t.callerSlots.n+len(t.lanes)-1)/len(t.lanes))
	case len(t.streams) > len(t.lanes):
		most = min(most, max(1, p.MaxInFlight/2)) // leave room for the other streams of the lane
	}
	if most < 2 {
		return 0, 0, 0, false
	}
	most = min(most, ls.batchGroup(s.id, s.next, p.BatchEvents))
	if most < 2 {
		return 0, 0, 0, false
	}
	got, phase := t.run.claim(most*p.BatchEvents, now)
	if got == 0 {
		return 0, phase, 0, true
	}
	batches := got / p.BatchEvents
	if rest := got % p.BatchEvents; rest > 0 && batches > 0 {
		t.run.unclaim(rest, phase) // a smaller last batch is fired alone
		got -= rest
	}
	batch := &t.batches[0]
	*batch = Batch{
		Seq: ls.seq, First: s.next, Stream: s.id, Events: int32(got), Batches: int32(max(batches, 1)),
		Phase: int32(phase), DueFirst: -1, DueLast: -1,
	}
	ls.seq += uint64(batch.Batches)
	free := t.freeSlots(ls)
	batch.Ready = max(free.next(), ls.firstSeen)
	batch.Free = max(batch.Ready, ls.roomSince, s.routedSince)
	return 1, phase, got, false
}

// count returns the number of batches that s represents.
func (s *Batch) count() int { return int(max(s.Batches, 1)) }
