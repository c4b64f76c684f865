package load

import (
	"time"

	"carronade/measure"
)

// A Plan is everything the engine needs to know about a run, apart from the
// target. Exactly one of three modes holds: Schedule set (open loop), Concurrency
// set (closed loop), or neither: as fast as the in-flight bound allows.
type Plan struct {
	Schedule    Schedule // when events are due, warm-up included
	Concurrency int      // closed loop: batches in flight, over all lanes

	MaxInFlight int           // batches in flight per lane; 0 means 5
	BatchEvents int           // fixed make-up of a batch; 0: as many as are due, up to the lane's room
	Linger      time.Duration // how long events wait for their batch
	Overload    Overload      // what happens to due events while the bound is reached
	BufferBytes int64         // bytes of due events waiting; reaching it counts as overload; 0: unbounded
	EventBytes  float64       // mean size of an event, for BufferBytes

	WarmupTime   time.Duration // excluded from the measurement; with a schedule, part of it
	WarmupEvents uint64        // without a schedule: excluded by number instead
	Steps        []Step        // spans of the measurement reported on their own, from the start of the measurement

	Measurement Limits
	Drain       time.Duration // how long answers (and due events still queued) are waited for; 0 means 10 s

	Interval   time.Duration // of the series; 0 means 1 s
	Unanswered bool          // the system acknowledges nothing (acks=0, UDP): sent counts, and there are no times
	Retry      int           // how often a failed batch is fired again
	Threads    int           // most sending threads; 0: one per client, at most one per processor, or as many as a Poller would have
	Gate       *Gate         // allowance handed over by another run; nil: none
	Portable   bool          // wait by the runtime's timers alone (virtual time; other systems do so anyway)

	// Observe sees every outcome once completed for good, on the thread of its
	// lane. The slice must not be kept.
	Observe func([]Outcome)
	// Trace sees the same as Observe, but batch groups go on being fired, and one of
	// its outcomes may stand for several batches (Batch.Batches). thread is which
	// sending thread calls, counted from 0 and below Run.Threads: each may have a
	// place of its own to put them. The slice must not be kept.
	Trace func(thread int, out []Outcome)
	// Cause says why the generator, or a thread of it, did not run for so long until
	// a few milliseconds ago, "" where that is not known. It is called from one
	// goroutine at a time, which is none of the run's own threads. Nil: nobody knows.
	Cause func(length time.Duration) string
	// Usage samples the generator's process: what it used since the last call.
	Usage func() measure.Usage
	// Completed is called when every batch is completed and before the result is
	// made: a round trip waits here, for a bounded time, until its consumer
	// has caught up.
	Completed func()
	// Watch sees each interval as it closes. It must not block for long.
	Watch func(Snapshot)
}

// Limits end the measurement. Zero means no limit.
type Limits struct {
	Time        time.Duration
	Events      uint64
	AtMost      bool // Events is a bound and no demand: a measurement that time or bytes ended lacks none
	Bytes       uint64
	Failures    uint64  // stop when more than this many events failed
	FailureRate float64 // stop when more than this share of answered events failed (after 100 of them)
}

// endless reports whether nothing but failures and somebody ends a measurement.
func (l *Limits) endless() bool { return l.Time == 0 && l.Events == 0 && l.Bytes == 0 }

// Endless reports whether nothing but failures and somebody ends a run: an
// interruption is the only end that was meant.
func (p *Plan) Endless() bool {
	return p.Measurement.endless() && (p.Schedule == nil || p.Schedule.End() == Never)
}

// Overload is what happens to an event that is due while the in-flight bound
// is reached.
type Overload uint8

// The policies.
const (
	Queue Overload = iota // wait: response time grows
	Drop                  // give up: counted as dropped
)
