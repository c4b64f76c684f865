package load

import (
	"sync/atomic"
	"time"

	"carronade/measure"
)

// A Plan describes a run, apart from its target. Exactly one of three modes applies:
// Schedule set (open loop), Concurrency set (closed loop), or neither: as fast as the
// in-flight bound allows.
type Plan struct {
	Schedule    Schedule // when events are due, warm-up included
	Concurrency int      // closed loop: batches in flight, over all lanes

	MaxInFlight int           // batches in flight per lane; 0 means 5
	BatchEvents int           // fixed number of events in a batch; 0: as many as are due, up to the lane's room
	Linger      time.Duration // how long events wait for their batch to fill
	Overload    Overload      // what happens to due events while the bound is reached
	BufferBytes int64         // bytes of due events that may wait; reaching it counts as overload; 0: unbounded
	EventBytes  float64       // mean size of an event, for BufferBytes

	WarmupTime   time.Duration // excluded from the measurement; with a schedule, part of it
	WarmupEvents uint64        // without a schedule: events excluded instead
	Steps        []Step        // spans of the measurement that are reported separately, from the start of the measurement

	Measurement Limits
	Drain       time.Duration // maximum wait for answers and for due events still queued; 0 means 10 s

	Interval   time.Duration // of the series; 0 means 1 s
	Unanswered bool          // the system acknowledges nothing (acks=0, UDP): events sent count, and times do not exist
	Retry      int           // maximum number of times that a failed batch is fired again
	Returns    bool          // events are read after they were sent, and those that are not have an age in the end-to-end times: see Run.Consumed and Run.Unread
	Threads    int           // maximum number of sending threads; 0: one per client, at most one per processor, or as many as a Poller prefers
	Gate       *Gate         // allowance, usually from another run; nil: none
	Portable   bool          // wait only by the Go runtime's timers (virtual time; other systems do so anyway)

	Portion Portion       // the part of the run that is fired here, if there are several generators
	StartAt time.Time     // when the run starts, with a monotonic reading; zero: when Start is called
	Lease   *atomic.Int64 // nothing is sent from this offset on, in ns since the start; it may be moved. nil: no lease

	// Observe receives every final outcome, on the thread of its lane. It must not keep
	// the slice.
	Observe func([]Outcome)
	// Trace receives the same as Observe, but batch groups are still fired, and one
	// outcome may represent several batches (Batch.Batches). thread is the number of
	// the calling sending thread, from 0 and below Run.Threads, so that each may write
	// to separate memory. It must not keep the slice.
	Trace func(thread int, out []Outcome)
	// Unsent receives, at the end of a run with a schedule, events of a stream that were due and never
	// sent; nothing else does. They were due evenly from first to last. thread is as for Trace. A run
	// without answers (Unanswered) does not call it.
	Unsent func(thread int, stream int32, first, last time.Duration, events uint64)
	// Dropped receives events of a stream that were due and dropped, when they are. The rest is as for
	// Unsent.
	Dropped func(thread int, stream int32, first, last time.Duration, events uint64)
	// Cause returns why the generator, or one of its threads, did not run for the given
	// length until a few milliseconds ago; "" if that is not known. It is called from
	// one goroutine at a time, which is not one of the run's own threads. Nil: causes
	// are not known.
	Cause func(length time.Duration) string
	// Usage returns what the generator's process used since the last call.
	Usage func() measure.Usage
	// Completed is called when every batch is completed and before the result is made:
	// a round trip waits here, for a bounded time, until its consumer has caught up.
	Completed func()
	// Watch receives each interval as it closes. It must not block for long.
	Watch func(Snapshot)
}

// Limits end the measurement. Zero means no limit.
type Limits struct {
	Time        time.Duration
	Events      uint64
	AtMost      bool // Events is only an upper limit: a measurement that time or bytes ended lacks none
	Bytes       uint64
	Failures    uint64  // stop when more than this many events failed
	FailureRate float64 // stop when more than this share of answered events failed (after 100 of them)
}

// endless reports whether only failures or a stop end a measurement.
func (l *Limits) endless() bool { return l.Time == 0 && l.Events == 0 && l.Bytes == 0 }

// Endless reports whether only failures or a stop end a run: an interruption is then
// its intended end.
func (p *Plan) Endless() bool {
	return p.Measurement.endless() && (p.Schedule == nil || p.Schedule.End() == Never)
}

// Overload is what happens to an event that is due while the in-flight bound is
// reached.
type Overload uint8

// The policies.
const (
	Queue Overload = iota // the event waits: response time grows
	Drop                  // the event is dropped and counted as such
)
