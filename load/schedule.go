package load

import "time"

// A Schedule defines when events are due. Event n (from 0) is due Due(n) after the
// schedule's start; Due never decreases. Count(t) is its inverse: the number of events
// due before t, so that a span [0, t) of a constant rate r contains exactly ceil(r*t)
// events. Events after the end of a finite schedule are due at Never. Implementations
// are safe for concurrent use.
type Schedule interface {
	Due(n uint64) time.Duration
	Count(t time.Duration) uint64
	// Rate returns the requested rate at t in events/s, for display and for warm-up.
	Rate(t time.Duration) float64
	// End returns when the schedule ends, Never if it does not.
	End() time.Duration
}

// Never is later than any event.
const Never = time.Duration(1<<63 - 1)

// A Stepped schedule names the spans that are reported separately: those over which its
// rate is constant, or which are meant as one piece.
type Stepped interface {
	Schedule
	Steps() []Step
}

// A Step is one span of a schedule.
type Step struct {
	Name       string // such as "20,000/s"
	Rate       float64
	Start, End time.Duration
}

// A Partitioner maps each event of a schedule to a stream. Every event belongs to
// exactly one stream. Implementations are safe for concurrent use.
type Partitioner interface {
	Streams() int
	// Event returns the number of the k-th event (from 0) of stream s.
	Event(s int32, k uint64) uint64
	// Before returns how many of the events 0..n-1 belong to stream s.
	Before(s int32, n uint64) uint64
}
