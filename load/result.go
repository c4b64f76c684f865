package load

import (
	"context"
	"time"

	"carronade/measure"
)

// A Result is what a run measured. Warm-up, measurement and drain partition the run; an
// event belongs to the phase of its due time (of its sending, without a schedule), no
// matter when its answer came.
type Result struct {
	Started time.Time // wall clock
	Ended   time.Time
	Stopped Reason // why the measurement ended
	Mode    Mode

	// Whole is set if the run was interrupted, but an interruption was its only
	// possible end, because it had no limit, and its answers were waited for: the
	// result is complete.
	Whole bool

	Unanswered bool // from the plan: nothing is acknowledged, and rates count sent events

	Warmup      measure.Tally // zero when there was none
	Measurement measure.Tally
	Drain       measure.Tally // only its length and what arrived in it: no event is due in a drain
	Steps       []measure.Tally
	Parts       []PartResult  // of a Mix
	Groups      []GroupResult // of a run that several groups read

	Intervals []measure.Interval // limited in number: a long series is merged pairwise
	Failures  []measure.Failure  // the first 32 distinct texts, then one row of other texts per class
	Classes   map[string]uint64  // events failed or unknown, by class, over all phases

	Stall    measure.Stall
	Freezes  measure.Freezes // of the generator
	Steady   measure.Steady
	Usage    measure.Usage // of the generator's process over the measurement
	Busy     float64       // share of the measurement that the busiest sending thread was at work
	Full     float64       // share of the measurement with the in-flight bound full, or nothing left to fire (no schedule), mean over lanes
	Fullest  float64       // the same share of the lane on which it is largest
	WireRead uint64        // bytes received

	Threads     int // sending threads; 0 when consuming
	MostThreads int // maximum number of threads from the plan; 0: none set
	Clients     int // of the target, each driven by one thread; 0 when consuming

	Members   []MemberResult // consuming: of those that divide the logs
	Rebalance time.Duration  // consuming: time without an assignment
	Missing   uint64         // events that the measurement lacks of Limits.Events
	Logs      []LogResult    // consuming: per log
}

// A PartResult is what one part of a Mix did in the measurement. Its times have no lower
// values: those are of the whole run.
type PartResult struct {
	measure.Tally                   // Name is the part's
	Classes       map[string]uint64 // events failed or unknown, by class, over all phases
}

// A LogResult is what was consumed of one log.
type LogResult struct {
	Log      string `json:"log"`
	Consumed uint64 `json:"consumed"`
	Bytes    uint64 `json:"bytes"`
	Lag      int64  `json:"lag_events"` // at the end of the run; -1: unknown
}

// A MemberResult is what one of several readers read in the measurement that divide the logs among them, such as a
// member of a consumer group.
type MemberResult struct {
	Consumed    uint64  `json:"consumed"`
	Bytes       uint64  `json:"bytes"`
	EventsPerS  float64 `json:"events_per_s"`
	Partitions  int     `json:"partitions"`   // the most that it had at a time
	Rebalances  uint64  `json:"rebalances"`   // how often its assignment changed after the first one
	UnassignedS float64 `json:"unassigned_s"` // without an assignment, in the whole run
}

// Mode is what makes events due.
type Mode string

// The modes.
const (
	OpenLoop   Mode = "open loop"
	ClosedLoop Mode = "closed loop"
	FullSpeed  Mode = "as fast as the in-flight bound allows"
	Consuming  Mode = "consume"
)

// Mode returns the mode of the run.
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
	ByLimit       Reason = "limit" // a limit on the results was broken
	BySchedule    Reason = "schedule ended"
	ByFeed        Reason = "feed ended"
	ByIdle        Reason = "idle"
	ByEnd         Reason = "end of the logs"
	Interrupted   Reason = "interrupted"
	ByTarget      Reason = "target failed"
	ByGenerator   Reason = "generator lost" // another one of several generators was lost
	ByLease       Reason = "lease ended"    // one of several generators did not hear from the one that commands them
	BySystem      Reason = "system ended"   // the run had started the system under test, and it ended
	ByMemory      Reason = "memory limit"   // the process had nearly all of the memory that it may have
	ByDrain       Reason = "backlog drained"
	ByBacklog     Reason = "backlog not drained" // within its time
	ByLoss        Reason = "no connection"       // a fault of the run ended processes, and no connection came back
	Killed        Reason = "killed"              // carronade itself was killed; set in the report that was saved until then
)

// A Snapshot is the state of a run in progress.
type Snapshot struct {
	At       time.Duration
	Number   int                // of the interval, from 0
	Phase    string             // "connecting", or a phase of package measure
	Left     time.Duration      // of the measurement; Never if no time ends it
	Endless  bool               // see Plan.Endless
	Stage    string             // of a backlog: "building", "draining" or "drained"; "": none
	Backlog  string             // the stage in words, such as "building a backlog: 3.2 GiB of 20 GiB"; "": none
	Interval measure.Interval   // the interval just closed, over all phases; its histograms are valid only during the call
	Rows     []measure.Interval // the same, one row per phase, as in the series
	Merged   []measure.Interval // rows of the series of several intervals that are complete with this one; see measure.Series.Changed
	Total    measure.Counts     // so far, all phases
	Kept     int                // bytes, roughly, that the series takes

	Unanswered bool // from the plan: nothing is acknowledged, and events sent count
	Consuming  bool // the run reads, and events consumed count

	Rebalance time.Duration // consuming: time without an assignment so far, mean over the clients

	Groups []string // names of Interval.Groups

	Freezes int           // of the generator's process that ended in the interval; see measure.Freezes
	Frozen  time.Duration // the longest of them
}

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
	// Capabilities returns what else the source can do, always the same.
	Capabilities() SourceCapabilities
}
