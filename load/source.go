package load

import (
	"context"
	"time"
)

// An Arrival is what a consumer received in one piece: consecutive events of one log.
type Arrival struct {
	Log    int32         // index into Source.Logs
	Base   int64         // offset of the first event
	Events int32         // events in the piece; offsets need not be dense
	Bytes  int64         // event bytes (key, value, headers); -1 when the piece is compressed and was only counted
	Wire   int64         // its size on the wire
	At     time.Duration // when it had been read completely

	// Earliest is the earliest moment at which it can have arrived completely: from
	// then to At it may have waited for its reader. 0: not known to be before At.
	Earliest time.Duration
	// Requested is when it was requested. Events sent after that did not wait for a
	// request, and arrived no earlier than Waited before At. 0: not known.
	Requested, Waited time.Duration

	Sum        uint32 // the checksum it came with
	ProducerID int64  // -1: none
	Epoch      int16
	Sequence   int32
	Corrupt    bool    // its checksum does not match, or a record could not be decoded
	Stamps     []Stamp // one per event, if events were stamped and decoding was requested; valid only during the call
}

// A Stamp is the data that a verified event carries in its payload.
type Stamp struct {
	Run    uint32 // low bits of the run's random id
	Stream int32
	Index  uint64 // index of the event in its stream
	Offset int64
	Bad    bool   // its own checksum does not match
	Key    uint64 // hash of its key, if the log is compacted
}

// An Answering is a Source that knows when the system last said, in answer to a request, that a log has
// no more events than were delivered.
type Answering interface {
	Source
	// Emptied returns for each log when that was, from the start of the run; 0: the system has not said
	// so since the log's newest events, or it is not known. A log that is not read, or not any more, is
	// always as if it had just been said. It is called after Receive, and is safe for concurrent use.
	Emptied() []time.Duration
	// Patience returns for how long the system may wait for new events before it says so again.
	Patience() time.Duration
}

// A Source is the consuming side of a target: it delivers arrivals.
type Source interface {
	// Logs returns the names of the logs by index: "topic-0", ...
	Logs() []string
	// Receive delivers until the context ends, the logs end or a permanent error
	// occurs. now returns the offset from the start of the run. sink may be called from
	// several goroutines at once, with different lane numbers (0..Lanes-1), and must
	// not keep the slice.
	Receive(ctx context.Context, now func() time.Duration, sink func(lane int, a []Arrival)) error
	// Lanes returns how many goroutines may deliver.
	Lanes() int
	// Lag returns, per log, the number of events between those delivered and the end of
	// the log; -1 if it is not known.
	Lag() []int64
	// Rebalancing returns the time spent without an assignment so far.
	Rebalancing() time.Duration
	// Wire returns bytes written and read so far.
	Wire() (written, read uint64)
}
