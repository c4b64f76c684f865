package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"carronade/load"
	"carronade/measure"
)

// Schema names the form of the document. Fields may be added to it; one that
// changes its meaning or goes makes it the next number.
const Schema = "carronade.report/1"

// A Document is the report of one run. Names end in their unit where they have
// one; times are histograms in microseconds; counts are events unless they say
// otherwise. Every field is described in docs/report.md.
type Document struct {
	Schema  string `json:"schema"`
	ID      string `json:"id"`   // short, of the run id; reports are kept and found by it
	Hash    string `json:"hash"` // of everything else in the report; see Seal
	Version string `json:"version"`
	RunID   string `json:"run_id"`

	Target      string            `json:"target"`
	Op          string            `json:"op"`
	Mode        load.Mode         `json:"mode"`
	Labels      map[string]string `json:"labels,omitempty"`
	Note        string            `json:"note,omitempty"`
	Repetition  int               `json:"repetition"`
	Repetitions int               `json:"repetitions"`

	StartedAt time.Time   `json:"started_at"`
	EndedAt   time.Time   `json:"ended_at"`
	Stopped   load.Reason `json:"stopped"`
	Partial   bool        `json:"partial"`

	Trust    measure.Trust  `json:"trust"`
	Steady   measure.Steady `json:"steady"`
	Checks   []Check        `json:"checks"`
	Problems []string       `json:"problems"`
	Warnings []string       `json:"warnings"`

	Workload any       `json:"workload"`
	Settings []Setting `json:"settings"`

	Totals Totals `json:"totals"`
	Times
	Steps  []Phase `json:"steps"`
	Phases []Phase `json:"phases"`

	Intervals []Interval        `json:"intervals"`
	Gauges    []Gauge           `json:"gauges"`
	Stall     Stall             `json:"stall"`
	Freezes   Freezes           `json:"freezes"`
	Failures  []measure.Failure `json:"failures"`
	Classes   map[string]uint64 `json:"classes"`

	Ledger    *measure.Ledger  `json:"ledger"`
	Indexed   *Indexed         `json:"indexed"`
	System    *System          `json:"system"`
	Hosts     []any            `json:"hosts"`
	Logs      []load.LogResult `json:"logs"`
	LagEvents map[string]int64 `json:"lag_events"`

	Generator   Generator        `json:"generator"`
	Calibration *Calibration     `json:"calibration"`
	Generates   *Generates       `json:"generates,omitempty"`
	Host        any              `json:"host"`
	HostText    string           `json:"host_text"`
	Facts       map[string]any   `json:"facts"`
	Clients     []measure.Client `json:"client_metrics,omitempty"`
	Attachments []Attachment     `json:"attachments,omitempty"`
	Samples     *Samples         `json:"samples,omitempty"`
	Trace       *Trace           `json:"trace,omitempty"`

	found string // the hash of the document as it was sealed or read
	raw   []byte // the head as it was read, in one line; nil: the fields say it all
}

// An Attachment is a text file that was given to the report, such as a
// server's configuration, with secrets masked.
type Attachment struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// A Setting is one resolved setting of the workload, as text.
type Setting struct {
	Name    string `json:"name"`
	Type    string `json:"type"` // of the value, as the schema of workloads calls it
	Value   string `json:"value"`
	Default bool   `json:"default"` // nobody set it
	Preset  bool   `json:"preset"`  // it follows from another setting
	// Minor settings need not be shown to people: they are about the report, or
	// hold a default that hardly anybody compares runs over.
	Minor bool `json:"minor"`
	// Independent settings are what a run is asked to do: reports are grouped
	// and compared over them.
	Independent bool `json:"independent"`
}

// A Check is one limit that was set, and what became of it.
type Check struct {
	Name string `json:"name"` // of the setting: "failure-rate"
	OK   bool   `json:"ok"`
	// CannotTell says of one that is not OK that nobody knows whether it holds.
	CannotTell bool   `json:"cannot_tell"`
	Text       string `json:"text"` // what was wanted and what was found
}

// Totals counts the events of the measurement, of a step or of a phase.
type Totals struct {
	measure.Counts
	Statuses measure.Statuses `json:"statuses,omitempty"`

	ElapsedS     float64 `json:"elapsed_s"`
	EventsPerS   float64 `json:"events_per_s"`
	BytesPerS    float64 `json:"bytes_per_s"`
	AnswersPerS  float64 `json:"answers_per_s,omitempty"` // batches answered, whatever the answer was
	RateOf       string  `json:"rate_of"`
	InFlightMean float64 `json:"in_flight_mean"`
	InFlightMax  uint64  `json:"in_flight_max"`            // at the ends of intervals
	InFlightPeak uint64  `json:"in_flight_peak,omitempty"` // at any time; 0 where nobody counted

	RebalanceS float64 `json:"rebalance_s"`
	FetchS     float64 `json:"fetch_s"`
	Missing    uint64  `json:"missing"`
}

// MostInFlight is the most that were in flight at once, as far as it is known.
func (t *Totals) MostInFlight() uint64 { return max(t.InFlightMax, t.InFlightPeak) }

// The values of Totals.RateOf: what events_per_s counts.
const (
	RateAcked    = "acked"
	RateSent     = "sent" // nothing is acknowledged
	RateConsumed = "consumed"
)

// Times are the times of the measurement, of a step or of a phase. Null: the number
// does not exist for this run.
type Times struct {
	Response      *measure.Summary `json:"response"`
	Service       *measure.Summary `json:"service"`
	SendDelay     *measure.Summary `json:"send_delay"`
	Batching      *measure.Summary `json:"batching"`
	Queueing      *measure.Summary `json:"queueing"`
	FailedService *measure.Summary `json:"failed_service"`
	EndToEnd      *measure.Summary `json:"end_to_end"`

	// The lower values: what is left when the generator's own delays are taken away.
	ResponseLower *measure.Summary `json:"response_lower"`
	ServiceLower  *measure.Summary `json:"service_lower"`
	EndToEndLower *measure.Summary `json:"end_to_end_lower"`
}

// A Phase is warm-up, measurement or drain, or a step of the measurement.
type Phase struct {
	Name   string  `json:"name"`
	Rate   float64 `json:"rate"`
	StartS float64 `json:"start_s"`
	EndS   float64 `json:"end_s"`
	Totals Totals  `json:"totals"`
	Times
}

// An Interval is one row of the series.
type Interval struct {
	Phase  string  `json:"phase"`
	StartS float64 `json:"start_s"`
	EndS   float64 `json:"end_s"`
	measure.Counts
	Statuses   measure.Statuses `json:"statuses,omitempty"`
	Classes    measure.Classes  `json:"classes,omitempty"`
	EventsPerS float64          `json:"events_per_s"`
	InFlight   uint64           `json:"in_flight"`
	LagEvents  int64            `json:"lag_events"`
	LagLogs    []int64          `json:"lag_events_by_log,omitempty"`
	Response   *measure.Summary `json:"response"`
	Service    *measure.Summary `json:"service"`
	SendDelay  *measure.Summary `json:"send_delay"`
	EndToEnd   *measure.Summary `json:"end_to_end"`
	Generator  Usage            `json:"generator"`

	// Histograms are whole: each is base64 of an HdrHistogram in microseconds,
	// V2 compressed, by the name of the time (response, service, send_delay, batching,
	// queueing, failed_service, end_to_end, censored).
	Histograms map[string]string `json:"histograms,omitempty"`

	sum *Sum   // of its JSON, once it was encoded or read
	raw []byte // its JSON as it was read, in one line; nil: the fields say it all
}

// A Gauge is a figure that somebody told of himself over the run. Null: it was
// not told then.
type Gauge struct {
	From   string   `json:"from"`
	Name   string   `json:"name"`
	Unit   string   `json:"unit"`
	Counts bool     `json:"counts"`
	Total  bool     `json:"total"`
	Before *float64 `json:"before"`
	Mean   *float64 `json:"mean"`
	Max    *float64 `json:"max"`
	After  *float64 `json:"after"`
	Missed uint64   `json:"missed"`
	Points []Point  `json:"points"`
}

// A Point is a gauge's value at an offset from the start of the run.
type Point struct {
	AtS   float64 `json:"at_s"`
	Value float64 `json:"value"`
}

// Usage is what the generator's process consumed.
type Usage struct {
	CPUS         float64 `json:"cpu_s"`
	RSSBytes     uint64  `json:"rss_bytes"`
	GCPauses     uint64  `json:"gc_pauses"`
	GCPauseMaxUS float64 `json:"gc_pause_max_us"`
	GCCPUS       float64 `json:"gc_cpu_s"`
}

// Generator is what the run cost the machine it ran on, over the measurement.
type Generator struct {
	Usage
	MaxRSSBytes   uint64  `json:"max_rss_bytes"`
	Processors    int     `json:"processors"`
	CPUShare      float64 `json:"cpu_share"`
	CPUUSPerEvent float64 `json:"cpu_us_per_event"`
	Busy          float64 `json:"busy"`
	BoundFull     float64 `json:"bound_full"`
	ReadBytes     uint64  `json:"read_bytes"`
}

// Stall describes the gaps in the answers.
type Stall struct {
	LongestS   float64 `json:"longest_s"`
	LongestAtS float64 `json:"longest_at_s"`
	Share      float64 `json:"share"`
	Count      uint64  `json:"count"`
	Spans      []Span  `json:"spans"` // the longest, in the order of time; nil in older reports
}

// A Span is a stretch of time.
type Span struct {
	AtS     float64 `json:"at_s"`
	LengthS float64 `json:"length_s"`
}

// A Calibration is what this machine generated when that was measured. It is
// cited beside a result and decides nothing.
type Calibration struct {
	At              time.Time `json:"at"`
	NullPerS        float64   `json:"null_events_per_s"`    // to nowhere
	DiscardPerS     float64   `json:"discard_events_per_s"` // into a discarding stand-in
	EventBytes      float64   `json:"event_bytes"`          // of the events it was measured with
	CarronadeAtThat string    `json:"version"`
}

// Generates is what this machine makes of the workload without a system: the same
// events, prepared for null://. It stands beside the result of a run at full
// speed and decides nothing.
type Generates struct {
	EventsPerS   float64   `json:"events_per_s"`
	BytesPerS    float64   `json:"bytes_per_s"`
	At           time.Time `json:"at"`
	Cached       bool      `json:"cached"` // measured after an earlier run, and kept
	WorkloadHash string    `json:"workload_hash"`
}

// The exit codes of the program. What each means is product-wide and part of
// `help exit-codes`; commands have them as command.OK and so on.
const (
	ExitOK          = 0
	ExitBroken      = 1   // done, but a limit that was asked for does not hold, or nothing was taken
	ExitFailed      = 2   // could not be done
	ExitUntrusted   = 3   // done, but the generator was the limit
	ExitCannotTell  = 4   // a gate or a limit cannot tell: too little history, too noisy, or not read
	ExitInterrupted = 130 // interrupted; the partial report is kept and marked
)

// Worse is the exit code that counts of two: an interruption before what could not
// be done, that before a broken limit, that before an untrustworthy run, and that
// before one of which nobody can tell.
func Worse(a, b int) int {
	order := []int{ExitOK, ExitCannotTell, ExitUntrusted, ExitBroken, ExitFailed, ExitInterrupted}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// ExitCode is what the program leaves with after this run. An interruption
// outranks the rest; output that could not be written outranks what it would
// have said; and a limit that does not hold outranks a generator that was one.
func (d *Document) ExitCode() int {
	switch {
	case d.Stopped == load.Interrupted:
		return ExitInterrupted
	case len(d.Problems) > 0 || d.Stopped == load.ByTarget:
		return ExitFailed
	}
	code := ExitOK
	for _, c := range d.Checks {
		switch {
		case c.OK:
		case c.CannotTell:
			code = ExitCannotTell
		default:
			return ExitBroken
		}
	}
	if !d.Trust.OK {
		return ExitUntrusted
	}
	return code
}

// WriteJSON writes the document as indented JSON: one that was read, with
// whatever it has that this program knows nothing of.
func (d *Document) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	v, err := d.written()
	if err != nil {
		return err
	}
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write the report as JSON: %w", err)
	}
	return nil
}

// Read reads a document that WriteJSON wrote. Whether it is what was written,
// Check tells.
func Read(r io.Reader) (*Document, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read a report: %w", err)
	}
	head, intervals, err := split(data)
	if err != nil {
		return nil, fmt.Errorf("read a report: %w", cutShort(err))
	}
	return Join(head, intervals)
}
