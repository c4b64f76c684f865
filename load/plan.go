package load

import (
	"math"
	"sync"
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
	Ends       bool          // something else than the limits ends the run: an interruption is not its intended end
	Returns    bool          // events are read after they were sent, and those that are not have an age in the end-to-end times: see Run.Consumed and Run.Unread
	Groups     []Group       // several readers of the events; nil: there is one, or none
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
	// Lag returns how many events were acked and not read at the end of an interval, for the series of a round
	// trip; below 0: it is not known. Nil: it never is.
	Lag func(end time.Duration) int64
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
	return !p.Ends && p.Measurement.endless() && (p.Schedule == nil || p.Schedule.End() == Never)
}

// Overload is what happens to an event that is due while the in-flight bound is
// reached.
type Overload uint8

// The policies.
const (
	Queue Overload = iota // the event waits: response time grows
	Drop                  // the event is dropped and counted as such
)

// A phase is a span of the run that is reported separately: the warm-up, the
// measurement, or each step of a measurement with several. An event belongs to the
// phase of its due time, or of its sending if nothing schedules it.
type phase struct {
	name       string
	warm       bool
	rate       float64
	start, end time.Duration // end is Never while unknown
	from, to   uint64        // events of the schedule; to is exclusive
}

const noEnd = math.MaxUint64

// phases divides the plan into phases. With a schedule the boundaries are exact event
// numbers; without one they are times, or a number of events for a warm-up by count.
func (p *Plan) phases() []phase {
	var out []phase
	start, from := time.Duration(0), uint64(0)
	count := func(t time.Duration) uint64 {
		if p.Schedule == nil || t == Never {
			return noEnd
		}
		return p.Schedule.Count(t)
	}
	if p.WarmupTime > 0 {
		out = append(out, phase{name: measure.WarmUp, warm: true, end: p.WarmupTime, to: count(p.WarmupTime)})
		start, from = p.WarmupTime, out[0].to
	} else if p.WarmupEvents > 0 {
		out = append(out, phase{name: measure.WarmUp, warm: true, end: Never, to: p.WarmupEvents})
		from = p.WarmupEvents
	}
	end := Never
	if p.Schedule != nil {
		end = p.Schedule.End()
	}
	if p.Measurement.Time > 0 && start+p.Measurement.Time < end {
		end = start + p.Measurement.Time
	}
	to := count(end)
	if p.Measurement.Events > 0 && (p.Schedule == nil || p.Measurement.Events < to-from) {
		to = from + p.Measurement.Events
	}
	if len(p.Steps) < 2 || p.Schedule == nil {
		rate := 0.0
		if p.Schedule != nil {
			rate = p.Schedule.Rate(start)
		}
		return append(out, phase{name: measure.Measurement, rate: rate, start: start, end: end, from: from, to: to})
	}
	for _, s := range p.Steps {
		ph := phase{name: s.Name, rate: s.Rate, start: start + s.Start, end: min(start+s.End, end), from: from}
		if s.End == Never {
			ph.end = end
		}
		if ph.start >= end || from >= to {
			break
		}
		ph.to = min(count(ph.end), to)
		from = ph.to
		out = append(out, ph)
	}
	return out
}

// PhaseNames returns the names of a plan's phases by the index that batches carry: the
// warm-up, if any, then the measurement or each of its steps.
func (p *Plan) PhaseNames() []string {
	var names []string
	for _, ph := range p.phases() {
		names = append(names, ph.name)
	}
	return names
}

// A Gate is an allowance of events: a run with a gate fires no more events than were
// added to it. Safe for concurrent use.
type Gate struct {
	closed atomic.Bool

	counts sync.Mutex
	left   int64         // allowed and not taken
	since  time.Duration // since when there was an allowance after there was none, as far as it is known
	taken  int64         // taken, and not yet fired or returned

	mu    sync.Mutex
	wakes []func()
}

// NewGate returns a gate that allows no events yet.
func NewGate() *Gate { return &Gate{} }

// Add allows n more events.
func (g *Gate) Add(n uint64) { g.addAt(n, 0) }

// addAt is Add at a time of the run, so that waiting for it is not taken for the generator's
// delay.
func (g *Gate) addAt(n uint64, at time.Duration) {
	g.counts.Lock()
	if g.left <= 0 {
		g.since = max(g.since, at)
	}
	g.left += int64(n)
	g.counts.Unlock()
	g.wake()
}

// Close announces that no more events are added: the run ends when the gate is empty.
func (g *Gate) Close() {
	g.closed.Store(true)
	g.wake()
}

// Left returns the unused allowance.
func (g *Gate) Left() uint64 {
	g.counts.Lock()
	defer g.counts.Unlock()
	return uint64(max(g.left, 0))
}

func (g *Gate) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.wakes {
		f()
	}
}

func (g *Gate) onChange(f func()) {
	g.mu.Lock()
	g.wakes = append(g.wakes, f)
	g.mu.Unlock()
}

// take claims up to n events and returns how many it got, and since when they were allowed.
// The caller must complete them.
func (g *Gate) take(n int) (got int, since time.Duration) {
	g.counts.Lock()
	defer g.counts.Unlock()
	got = int(min(int64(n), max(g.left, 0)))
	g.left -= int64(got)
	g.taken += int64(got)
	return got, g.since
}

// complete records what became of events that were taken: fired, or returned.
func (g *Gate) complete(fired, back int) {
	g.counts.Lock()
	g.left += int64(back)
	g.taken -= int64(fired + back)
	g.counts.Unlock()
}

// empty reports whether the gate is closed with nothing left, and nothing taken that
// may still be returned.
func (g *Gate) empty() bool {
	if !g.closed.Load() {
		return false
	}
	g.counts.Lock()
	defer g.counts.Unlock()
	return g.left <= 0 && g.taken == 0
}

// takeFrom claims up to n from a shared budget.
func takeFrom(budget *atomic.Int64, n int64) int64 {
	for {
		left := budget.Load()
		if left <= 0 {
			return 0
		}
		got := min(n, left)
		if budget.CompareAndSwap(left, left-got) {
			return got
		}
	}
}

// Mode is how the plan sends.
func (p *Plan) Mode() Mode {
	switch {
	case p.Schedule != nil:
		return OpenLoop
	case p.Concurrency > 0:
		return ClosedLoop
	}
	return FullSpeed
}

// leastAnswered is from how many answered events on a share of failures says something.
const leastAnswered = 100

// Broken is the limit on failures that is broken after as many events failed of those that were
// answered; "": none.
func (l *Limits) Broken(failed, answered uint64) Reason {
	switch {
	case l.Failures > 0 && failed > l.Failures:
		return ByFailures
	case l.FailureRate > 0 && answered >= leastAnswered && float64(failed) > l.FailureRate*float64(answered):
		return ByFailureRate
	}
	return ""
}
