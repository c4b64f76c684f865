package measure

import (
	"slices"
	"time"
)

// A Set contains the histograms of one phase, step or interval. A nil histogram means
// that the number does not exist for this run (a closed loop has no response times),
// unlike an empty one (nothing was measured).
type Set struct {
	Response      *Histogram // done - due, per acked event
	Service       *Histogram // done - sent, per answered batch
	SendDelay     *Histogram // sent - max(due, ready, free), per event sent: the lateness of the generator
	Batching      *Histogram // ready - due, per event sent
	Queueing      *Histogram // free - ready, per batch
	FailedService *Histogram // done - sent, per batch that failed
	EndToEnd      *Histogram // consumed - due (or - sent, without a schedule), per event consumed in a round trip
	AckedToRead   *Histogram // consumed - done, per acked event that a consumer group read; 0 if it was read first

	// Censored contains the ages of events without an answer: unknown and unsent ones.
	// They are included in the percentiles of Response.
	Censored *Histogram
	// UnreadAges contains the ages of events that should have been read and were not: acked ones, and those
	// in Censored that did not arrive. They are included in the percentiles of EndToEnd.
	UnreadAges *Histogram
}

// Histograms is the number of histograms in a Set.
const Histograms = 10

// AgesOf names the histogram with the ages of events that have no value of a time, by the name of the time:
// each value that is missing is at least the age. "" if no time is missing values.
func AgesOf(time string) string {
	switch time {
	case "response":
		return "censored"
	case "end_to_end":
		return "unread"
	}
	return ""
}

// Each calls f with every histogram of the set, by name.
func (s *Set) Each(f func(name string, h **Histogram)) {
	f("response", &s.Response)
	f("service", &s.Service)
	f("send_delay", &s.SendDelay)
	f("batching", &s.Batching)
	f("queueing", &s.Queueing)
	f("failed_service", &s.FailedService)
	f("end_to_end", &s.EndToEnd)
	f("censored", &s.Censored)
	f("unread", &s.UnreadAges)
	f("acked_to_read", &s.AckedToRead)
}

// Merge adds o to s, allocating histograms that only o has.
func (s *Set) Merge(o *Set) {
	var from [Histograms]*Histogram
	i := 0
	o.Each(func(_ string, h **Histogram) { from[i] = *h; i++ })
	i = 0
	s.Each(func(_ string, h **Histogram) {
		src := from[i]
		i++
		if src == nil {
			return
		}
		if *h == nil {
			*h = NewHistogram()
		}
		(*h).Merge(src)
	})
}

// Lower contains the times of a phase or step without the generator's own delays: the
// lower bounds to the upper ones in a Set, of the same events. A nil histogram means that
// the time does not exist.
type Lower struct {
	Response *Histogram // per acked event
	Service  *Histogram // per answered batch
	EndToEnd *Histogram // per event consumed
}

// Merge adds o to l, allocating histograms that only o has.
func (l *Lower) Merge(o *Lower) {
	for _, h := range []struct {
		to   **Histogram
		from *Histogram
	}{{&l.Response, o.Response}, {&l.Service, o.Service}, {&l.EndToEnd, o.EndToEnd}} {
		if h.from == nil {
			continue
		}
		if *h.to == nil {
			*h.to = NewHistogram()
		}
		(*h.to).Merge(h.from)
	}
}

// The phases of a run, as reports name them. A step of a schedule has its own name
// instead of Measurement.
const (
	WarmUp      = "warm-up"     // sent, but not part of the results
	Measurement = "measurement" // the results
	Drain       = "drain"       // nothing more is sent; answers are awaited
)

// A Tally is everything counted and timed in one phase or step.
type Tally struct {
	Name string  // a phase, or the name of a step, such as "step 2: 20,000/s"
	Rate float64 // requested events/s; 0 when none was requested

	// Start and End bound the phase, from the start of the run.
	Start, End time.Duration

	Counts
	Set
	Lower    Lower
	Statuses Statuses // of the answers

	// Arrived counts answers that arrived between Start and End, no matter which phase
	// their events belong to: throughput is Arrived divided by the length.
	Arrived uint64
	// ArrivedBytes is the same in event bytes.
	ArrivedBytes uint64
	// Answers counts batches that were answered between Start and End, with any answer.
	Answers uint64
	// Sends counts events that were sent between Start and End, no matter which phase they belong to:
	// what waits for the in-flight limit is sent in the drain, too. SendBytes is the same in event
	// bytes, and SendWire in bytes on the connections, where an interval that lies in part between
	// Start and End has that part of its bytes.
	Sends, SendBytes, SendWire uint64

	// InFlight is the time-weighted mean of events in flight.
	InFlight float64
	// InFlightPeak is the maximum in flight at once. With several sending threads it is
	// the sum of their maxima, which is an upper bound. 0 if it was not counted.
	InFlightPeak uint64
}

// Length returns End - Start.
func (t *Tally) Length() time.Duration { return t.End - t.Start }

// EventsPerSecond returns the throughput: answers (or consumed events) that arrived in
// the phase, divided by its length; 0 for a phase without length.
func (t *Tally) EventsPerSecond() float64 { return PerSecond(t.Arrived, t.Length()) }

// BytesPerSecond returns EventsPerSecond in event bytes.
func (t *Tally) BytesPerSecond() float64 { return PerSecond(t.ArrivedBytes, t.Length()) }

// AnswersPerSecond returns how many batches were answered a second in the phase.
func (t *Tally) AnswersPerSecond() float64 { return PerSecond(t.Answers, t.Length()) }

// SentPerSecond returns how many events, event bytes and bytes on the connections were sent a second in the phase.
func (t *Tally) SentPerSecond() (events, bytes, wire float64) {
	d := t.Length()
	return PerSecond(t.Sends, d), PerSecond(t.SendBytes, d), PerSecond(t.SendWire, d)
}

// Part returns the part of a number of the interval that lies in its phase, if the number grew evenly.
func (iv *Interval) Part(n uint64) uint64 {
	if iv.Within >= iv.Length() {
		return n
	}
	return uint64(float64(n) * iv.Within.Seconds() / iv.Length().Seconds())
}

// PerSecond returns n divided by a length of time; 0 without length.
func PerSecond(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// An Interval is one row of the series. Offered counts by due time, Sent by
// sent time, Acked, Failed, Unknown and the histograms by done time; the sums
// over a phase's intervals equal its Tally.
type Interval struct {
	Phase      string
	Start, End time.Duration
	// Within is how much of the interval lies in its phase: a warm-up may end, or the drain begin,
	// within an interval. Arrived counts the answers (or consumed events) that came in that part,
	// no matter which phase their events belong to: the interval's part of the Tally's Arrived.
	Within  time.Duration
	Arrived uint64
	Counts
	Set
	Statuses  Statuses // of the answers
	Classes   Classes  // of failed and unknown events
	InFlight  uint64   // events in flight at End
	Generator Usage    // of the generator's process during the interval
	LagEvents int64    // consuming: events behind the end of the log at End; -1: unknown
	// LagLogs is the same for each log, in the order of the result's logs; nil if there
	// are too many to keep.
	LagLogs []int64
	// Groups are the consumer groups of a round trip, in the order of the result's; nil if there are none.
	Groups []GroupInterval
}

// A GroupInterval is what one of several consumer groups did in an interval.
type GroupInterval struct {
	Consumed   uint64        // events, each once
	Backlog    uint64        // events acked and not consumed, at the end of the interval
	Unassigned time.Duration // without an assignment, the mean over the members
}

// Usage is what a process consumed in a span of time.
type Usage struct {
	CPU        time.Duration // user + system
	RSS        uint64        // resident bytes at the end of the span
	MaxRSS     uint64        // largest resident size so far, bytes
	GCPauses   uint64        // stop-the-world pauses
	GCPauseMax time.Duration // the longest of them
	GCCPU      time.Duration // CPU time of the collector
}

// A Failure is one distinct failure text of a run.
type Failure struct {
	Class   string `json:"class"`
	Text    string `json:"text"`
	Events  uint64 `json:"events"`
	Batches uint64 `json:"batches"`
}

// Stall describes the gaps in the answers.
type Stall struct {
	Longest   time.Duration // the longest time without an answer while answers were expected
	LongestAt time.Duration // when it began
	Share     float64       // share of the measurement in gaps longer than 100 ms while answers were expected

	Count uint64 // gaps that lasted longer than 100 ms and began within the measurement
	Spans []Span // these gaps in order of time; only the longest MostSpans if there are more
}

// A Span is a period of time.
type Span struct {
	At     time.Duration // when it began, from the start of the run
	Length time.Duration
}

// MostSpans limits the stalls that are kept individually.
const MostSpans = 1000

// Add records a stall. One that begins no later than the newest is the same stall,
// continued; of one that begins before the newest ended, only the rest counts.
func (s *Stall) Add(since, until time.Duration) {
	from := since
	if n := len(s.Spans); n > 0 {
		last := &s.Spans[n-1]
		if since <= last.At {
			last.Length = max(last.Length, until-last.At)
			return
		}
		from = max(since, last.At+last.Length)
	}
	if until <= from {
		return
	}
	s.Count++
	s.Spans = append(s.Spans, Span{At: from, Length: until - from})
	if n := len(s.Spans); n > MostSpans { // not the newest, which may continue
		least := 0
		for i := range s.Spans[:n-1] {
			if s.Spans[i].Length < s.Spans[least].Length {
				least = i
			}
		}
		s.Spans = append(s.Spans[:least], s.Spans[least+1:]...)
	}
}

// A Freeze is a time in which the generator itself did not run.
type Freeze struct {
	At     time.Duration // when it began, from the start of the run
	Length time.Duration
	Who    string // what did not run: "process", "sending thread", "receiving thread"
	Cause  string // why, if known; else ""
}

// Freezes are the freezes of a run that lasted 10 ms or longer.
type Freezes struct {
	Count   uint64
	Total   time.Duration // within the measurement, overlaps counted once
	Longest []Freeze      // at most ten, the longest first
	// Process are the freezes of the process, in order of time; only the newest if
	// there are very many.
	Process []Freeze
}

// A Bound states how far the generator may have moved one percentile. The true value
// lies between Lower and Upper; the report prints Upper.
type Bound struct {
	Time  string  `json:"time"` // "response", "service" or "end_to_end"
	Step  string  `json:"step"` // the name of the step; "": the complete measurement
	P     float64 `json:"p"`    // in percent
	Upper float64 `json:"upper_us"`
	Lower float64 `json:"lower_us"`
	Level Level   `json:"level"`
}

// Trust is the verdict on the generator itself.
type Trust struct {
	OK      bool     `json:"ok"`      // trusted or noisy: the run may be used
	Level   Level    `json:"level"`   // NotTrusted when there are reasons, else Noisy when there are doubts
	Reasons []string `json:"reasons"` // why it is not trusted
	Doubts  []string `json:"doubts"`  // why it is noisy, with the bounds
	Notes   []string `json:"notes"`   // remarks that do not affect the level
	Bounds  []Bound  `json:"bounds"`  // percentiles that the generator may have moved too far to be trusted as printed
}

// Steady states whether the run was steady.
type Steady struct {
	OK            bool    `json:"ok"`
	Known         bool    `json:"known"`                 // false when the measurement was too short to tell
	InFlightSlope float64 `json:"in_flight_slope"`       // events in flight gained per second of the measurement
	ResponseSlope float64 `json:"response_slope_us"`     // microseconds of mean response (or else service) time gained per second
	InFlightRise  float64 `json:"in_flight_rise"`        // over the measurement, as a share of the mean
	ResponseRise  float64 `json:"response_rise"`         // over the measurement, as a share of the mean
	Needed        float64 `json:"needed_s,omitempty"`    // length of a measurement that tells a climb of a tenth of the response time from none; 0: not known
	Silent        float64 `json:"silent"`                // share of the complete intervals in which the system accepted nothing, or refused most
	Outage        string  `json:"outage,omitempty"`      // when nothing was answered, if that makes the run unsteady
	OutageAt      float64 `json:"outage_at_s,omitempty"` // when the longest outage began, from the start of the run
	OutageLength  float64 `json:"outage_s,omitempty"`    // its length
	Text          string  `json:"text"`
}

// Ledger is the verdict on what was read back.
type Ledger struct {
	Acked      uint64 `json:"acked"`
	Read       uint64 `json:"read"`
	Lost       uint64 `json:"lost"`
	Duplicated uint64 `json:"duplicated"`
	Reordered  uint64 `json:"reordered"`
	Corrupted  uint64 `json:"corrupted"`
	Recovered  uint64 `json:"recovered"`
	// Contradicted is the part of Recovered that the system had certainly refused.
	Contradicted uint64 `json:"contradicted"`

	// Unread counts acked events that were not found and could not be looked for: they
	// were removed before they were read, or reading ended before them. Removed is the
	// part of it that was removed.
	Unread  uint64 `json:"unread"`
	Removed uint64 `json:"removed"`
	// Compacted counts acked events that are missing because a later event of their key
	// was found, in a topic that keeps only the last of each.
	Compacted uint64 `json:"compacted"`

	// Of transactions: acked events in committed ones, those of them that a reader of
	// committed events found, acked events in aborted ones, and events of aborted ones
	// that such a reader found.
	Committed     uint64 `json:"committed"`
	CommittedRead uint64 `json:"committed_read"`
	Aborted       uint64 `json:"aborted"`
	Phantom       uint64 `json:"phantom"`

	Inexact  uint64 `json:"inexact"`  // events that could not be checked one by one
	Foreign  uint64 `json:"foreign"`  // found, but not from this run
	Complete bool   `json:"complete"` // everything up to the logs' ends was read
	// Unchecked names the counts that are always 0, because what was read back does not show them.
	Unchecked []string    `json:"unchecked,omitempty"`
	Blocked   string      `json:"blocked,omitempty"` // why the system held back what was not read; "": it is not known to have
	Method    string      `json:"method"`            // how events were distinguished: "batches", "stamps", ...
	Logs      []LedgerLog `json:"logs,omitempty"`    // per partition
	// Groups are the consumer groups that read the events, if there are some: an event counts once for each of them
	// in all counts above.
	Groups []LedgerGroup `json:"groups,omitempty"`
}

// LedgerGroup is the ledger of one consumer group.
type LedgerGroup struct {
	Group    string `json:"group"`
	Complete bool   `json:"complete"`
	Removed  uint64 `json:"removed"`
	Foreign  uint64 `json:"foreign"`
	Blocked  string `json:"blocked,omitempty"`
	LedgerCounts
}

// JoinLedgers returns the ledgers of consumer groups as one.
func JoinLedgers(names []string, of []Ledger) Ledger {
	all := Ledger{Complete: true}
	for i := range of {
		l := &of[i]
		part := LedgerGroup{Group: names[i], Complete: l.Complete, Removed: l.Removed, Foreign: l.Foreign, Blocked: l.Blocked, LedgerCounts: LedgerCounts{
			Acked: l.Acked, Read: l.Read, Lost: l.Lost, Duplicated: l.Duplicated, Reordered: l.Reordered, Corrupted: l.Corrupted,
			Recovered: l.Recovered, Unread: l.Unread, Compacted: l.Compacted, Phantom: l.Phantom, Inexact: l.Inexact,
		}}
		all.Groups = append(all.Groups, part)
		all.Acked += l.Acked
		all.Read += l.Read
		all.Lost += l.Lost
		all.Duplicated += l.Duplicated
		all.Reordered += l.Reordered
		all.Corrupted += l.Corrupted
		all.Recovered += l.Recovered
		all.Contradicted += l.Contradicted
		all.Unread += l.Unread
		all.Removed += l.Removed
		all.Compacted += l.Compacted
		all.Committed += l.Committed
		all.CommittedRead += l.CommittedRead
		all.Aborted += l.Aborted
		all.Phantom += l.Phantom
		all.Inexact += l.Inexact
		all.Foreign += l.Foreign
		all.Complete = all.Complete && l.Complete
		if all.Blocked == "" {
			all.Blocked = l.Blocked
		}
		all.Method, all.Unchecked = l.Method, l.Unchecked
		if all.Logs == nil {
			all.Logs = slices.Clone(l.Logs)
			continue
		}
		for k := range l.Logs {
			all.Logs[k].Add(l.Logs[k].LedgerCounts)
		}
	}
	return all
}

// LedgerLog is the ledger of one log (a partition).
type LedgerLog struct {
	Log string `json:"log"`
	LedgerCounts
}

// LedgerCounts are the counts of a part of a ledger: of a log, or of a consumer group.
type LedgerCounts struct {
	Acked      uint64 `json:"acked"`
	Read       uint64 `json:"read"`
	Lost       uint64 `json:"lost"`
	Duplicated uint64 `json:"duplicated"`
	Reordered  uint64 `json:"reordered"`
	Corrupted  uint64 `json:"corrupted"`
	Recovered  uint64 `json:"recovered"`
	Unread     uint64 `json:"unread"`
	Compacted  uint64 `json:"compacted"`
	Phantom    uint64 `json:"phantom"`
	Inexact    uint64 `json:"inexact"`
}

// Add adds o to c.
func (c *LedgerCounts) Add(o LedgerCounts) {
	c.Acked += o.Acked
	c.Read += o.Read
	c.Lost += o.Lost
	c.Duplicated += o.Duplicated
	c.Reordered += o.Reordered
	c.Corrupted += o.Corrupted
	c.Recovered += o.Recovered
	c.Unread += o.Unread
	c.Compacted += o.Compacted
	c.Phantom += o.Phantom
	c.Inexact += o.Inexact
}
