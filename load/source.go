package load

import (
	"context"
	"time"
)

// An Arrival is a piece that a consumer got: consecutive events of one log.
type Arrival struct {
	Log    int32         // index into Source.Logs
	Base   int64         // offset of the first event
	Events int32         // events in the piece; offsets need not be dense
	Bytes  int64         // event bytes (key, value, headers); -1 when the piece was only counted and is compressed
	Wire   int64         // its size as it travelled
	At     time.Duration // when it had been read whole

	// Earliest is the earliest moment at which it can have arrived whole: from then
	// to At it may have waited for its reader. 0: not before At, as far as is known.
	Earliest time.Duration
	// Asked is when it had been asked for: what was sent later waited for no request,
	// and was here Waited before At at the earliest. 0: not known.
	Asked, Waited time.Duration

	Sum        uint32 // the checksum it came with
	ProducerID int64  // -1: none
	Epoch      int16
	Sequence   int32
	Corrupt    bool    // its checksum does not fit, or a record did not decode
	Stamps     []Stamp // of each event, where events were stamped and decoding was asked for; valid during the call only
}

// A Stamp is what a verified event carries in its own bytes.
type Stamp struct {
	Run    uint32 // low bits of the run's random id
	Stream int32
	Index  uint64 // index of the event in its stream
	Offset int64
	Bad    bool   // its own checksum does not fit
	Key    uint64 // hash of its key, where the log is compacted
}

// A Source is the consuming side of a target: it delivers arrivals.
type Source interface {
	// Logs names what is read, by index: "topic-0", ...
	Logs() []string
	// Receive delivers until the context ends, the end is reached or an error
	// that cannot be mended. now gives the offset from the start of the run.
	// sink may be called from several goroutines at once, with different lane
	// numbers (0..Lanes-1), and must not keep the slice.
	Receive(ctx context.Context, now func() time.Duration, sink func(lane int, a []Arrival)) error
	// Lanes is how many goroutines may deliver.
	Lanes() int
	// Behind returns, per log, how many events there are between what was
	// delivered and the end of the log; -1 where that is not known.
	Behind() []int64
	// Rebalancing is the time spent without an assignment so far.
	Rebalancing() time.Duration
	// Wire returns bytes written and read so far.
	Wire() (written, read uint64)
}
