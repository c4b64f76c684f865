package load

import (
	"time"

	"carronade/measure"
)

// A Result is what a run measured. Warm-up, measurement and drain partition the run;
// an event belongs to the phase of its due time (of its sending, without a
// schedule), whenever its answer came.
type Result struct {
	Started time.Time // wall clock
	Ended   time.Time
	Stopped Reason // why the measurement ended
	Mode    Mode

	// Whole says of a run that was interrupted that this was the only end it had,
	// since nothing limited it, and that its answers were waited for: what was
	// asked for is all there.
	Whole bool

	Unanswered bool // the plan's: nothing is acknowledged, and rates are of sent events

	Warmup      measure.Tally // zero when there was none
	Measurement measure.Tally
	Drain       measure.Tally // only its length and what arrived in it: nothing is due in a drain
	Steps       []measure.Tally

	Intervals []measure.Interval // bounded: a long series is joined pairwise
	Failures  []measure.Failure  // the first 32 distinct texts, then one row for "others" per class
	Classes   map[string]uint64  // events failed or unknown, by class, over the whole run

	Stall    measure.Stall
	Freezes  measure.Freezes // of the generator
	Steady   measure.Steady
	Usage    measure.Usage // of the generator's process over the measurement
	Busy     float64       // largest share of the measurement that a sending thread was at work
	Full     float64       // share of the measurement that the in-flight bound was full, or nothing was left to fire (no schedule), mean over lanes
	WireRead uint64        // bytes received

	Threads     int // that sent; 0 when reading
	MostThreads int // the plan's: how many there may have been; 0: it set no bound
	Clients     int // of the target, each driven by one thread; 0 when reading

	Rebalance time.Duration // consuming: time without an assignment
	Missing   uint64        // events short of Measurement.Events at the end
	Logs      []LogResult   // consuming: per log
}

// A LogResult is what was read from one log.
type LogResult struct {
	Log      string `json:"log"`
	Consumed uint64 `json:"consumed"`
	Bytes    uint64 `json:"bytes"`
	Behind   int64  `json:"lag_events"` // at the end of the run; -1 unknown
}

// Mode is how events were made due.
type Mode string

// The modes.
const (
	OpenLoop   Mode = "open loop"
	ClosedLoop Mode = "closed loop"
	FullSpeed  Mode = "as fast as the in-flight bound allows"
	Consuming  Mode = "consume"
)

// Mode returns how the run's events are due.
func (r *Run) Mode() Mode { return r.mode }

// Reason is why a measurement ended.
type Reason string

// The reasons.
const (
	ByTime        Reason = "time"
	ByEvents      Reason = "events"
	ByBytes       Reason = "bytes"
	ByFailures    Reason = "failures"
	ByFailureRate Reason = "failure rate"
	BySchedule    Reason = "schedule ended"
	ByFeed        Reason = "feed ended"
	ByIdle        Reason = "idle"
	ByEnd         Reason = "end of the logs"
	Interrupted   Reason = "interrupted"
	ByTarget      Reason = "target failed"
	BySystem      Reason = "system ended" // the system under test belonged to the run, and was gone
	Killed        Reason = "killed"       // the program itself was gone; told of a report that was kept until then
)

// A Snapshot is the state of a run in progress, for watchers.
type Snapshot struct {
	At       time.Duration
	Phase    string             // "connecting", or a phase of package measure
	Left     time.Duration      // of the measurement; Never where no time ends it
	Endless  bool               // as of the plan
	Interval measure.Interval   // the interval just closed, all phases together; its histograms are valid during the call
	Rows     []measure.Interval // the same, a row a phase, as the series keeps them
	Total    measure.Counts     // so far, all phases

	Unanswered bool // the plan's: nothing is acknowledged, and what was sent counts

	Rebalance time.Duration // consuming: without an assignment so far, as the mean over the clients
}
