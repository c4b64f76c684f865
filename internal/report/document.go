package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"carronade/internal/verdict/trust"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// Schema is the version of the format. New fields keep the number; changed or removed ones
// increase it.
const Schema = "carronade.report/1"

// A Document is the report of one run. Field names end in their unit if they have one; times
// are histograms in microseconds; counts are events unless stated otherwise. docs/report.md
// describes every field.
type Document struct {
	Schema  string `json:"schema"`
	ID      string `json:"id"`   // short, derived from the run id; reports are stored by it
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
	Replaces    string            `json:"replaces,omitempty"` // id of the same repetition's report that was not trusted

	StartedAt time.Time   `json:"started_at"`
	EndedAt   time.Time   `json:"ended_at"`
	Stopped   load.Reason `json:"stopped"`
	Partial   bool        `json:"partial"`

	Trust    measure.Trust  `json:"trust"`
	Steady   measure.Steady `json:"steady"`
	Checks   []Check        `json:"checks"`
	Problems []string       `json:"problems"`
	Warnings []string       `json:"warnings"`
	Notice   string         `json:"notice,omitempty"` // what the headline begins with, unless the system failed

	Workload any       `json:"workload"`
	Settings []Setting `json:"settings"`

	Totals Totals `json:"totals"`
	Times
	Steps  []Phase `json:"steps"`
	Phases []Phase `json:"phases"`
	Parts  []Part  `json:"parts,omitempty"`
	Groups []Group `json:"groups,omitempty"` // consumer groups of a round trip
	// Fairness is Jain's index of what share of its due events each part got acked: 1 if all
	// shares are equal, 1/n if only one of n parts got any. Null: there are no parts.
	Fairness *float64 `json:"fairness,omitempty"`

	Intervals []Interval        `json:"intervals"`
	Gauges    []Gauge           `json:"gauges"`
	Moments   []Moment          `json:"moments,omitempty"`
	Stall     Stall             `json:"stall"`
	Freezes   Freezes           `json:"freezes"`
	Faults    *Faults           `json:"faults,omitempty"`  // nil: the run takes no marks
	Backlog   *ReadBacklog      `json:"backlog,omitempty"` // nil: the run built none
	Failures  []measure.Failure `json:"failures"`
	Classes   map[string]uint64 `json:"classes"`

	Ledger    *measure.Ledger  `json:"ledger"`
	Indexed   *Indexed         `json:"indexed"`
	System    *System          `json:"system"`
	Hosts     []any            `json:"hosts"`
	Logs      []load.LogResult `json:"logs"`
	LagEvents map[string]int64 `json:"lag_events"`

	Members []load.MemberResult `json:"members,omitempty"` // of a consuming run, which divide the logs

	Generator   Generator         `json:"generator"`
	Calibration *Calibration      `json:"calibration"`
	Generates   *Generates        `json:"generates,omitempty"`
	Encoding    *measure.Encoding `json:"encoding,omitempty"`
	Undecoded   string            `json:"undecoded,omitempty"` // how events that were read were counted, if they were not decoded
	Host        any               `json:"host"`
	HostText    string            `json:"host_text"`
	Others      *trust.Others     `json:"others,omitempty"` // what else used the machine just before the run; nil: not known
	Facts       map[string]any    `json:"facts"`
	Clients     []measure.Client  `json:"client_metrics,omitempty"`
	Attachments []Attachment      `json:"attachments,omitempty"`
	Samples     *Samples          `json:"samples,omitempty"`
	Trace       *Trace            `json:"trace,omitempty"`
	Fleet       *Fleet            `json:"fleet,omitempty"` // nil unless several generators fired together
	Search      *Search           `json:"-"`               // nil unless it is the report of a search; see form
	Scenario    *Scenario         `json:"-"`               // nil unless it is the report of a scenario

	computedHash string // the hash computed when the document was sealed or read
	raw          []byte // the head as read, in one line; nil: same as the fields
}

// An Attachment is a text file added to the report, such as a server's configuration, with
// secrets masked.
type Attachment struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// Original is KEY:HASH: an HMAC-SHA-256 of the file's bytes before secrets were masked,
	// and which key it was made with. The key never leaves its machine, so that a short
	// secret cannot be guessed from the hash. "" if it was not made.
	Original string `json:"original,omitempty"`
}

// A Setting is one resolved setting of the workload, as text.
type Setting struct {
	Name    string `json:"name"`
	Type    string `json:"type"` // of the value, as the schema of workloads calls it
	Value   string `json:"value"`
	Default bool   `json:"default"` // not set by the user
	Preset  bool   `json:"preset"`  // derived from another setting
	// Minor settings are not shown in texts: they are about the report, or have a default that
	// is rarely compared.
	Minor bool `json:"minor"`
	// Independent settings define the load: reports are grouped and compared by them.
	Independent bool `json:"independent"`
}

// SettingOf is a resolved setting as a row of a report.
func SettingOf(s *workload.Resolved) Setting {
	return Setting{
		Name: s.Name, Type: s.Type.String(), Value: s.Text(),
		Default: s.From == workload.FromDefault, Preset: s.From == workload.FromPreset, Minor: s.Minor, Independent: s.Independent,
	}
}

// A Check is one limit with its outcome.
type Check struct {
	Name string `json:"name"` // of the setting: "failure-rate"
	OK   bool   `json:"ok"`
	// CannotTell means that a check that is not OK may still hold.
	CannotTell bool   `json:"cannot_tell"`
	Text       string `json:"text"` // expected and found
	// Found and Bound are the result and the value of a limit of --slo, in seconds, events,
	// events/s, bytes, or as a share of one. In a run with steps, Found is of the last step that
	// holds the limit, else of the first.
	Found *float64 `json:"found,omitempty"`
	Bound *float64 `json:"bound,omitempty"`

	generator bool // see ByGenerator
}

// ByGenerator reports whether a check cannot tell because of what the generator may have added.
// That is known only when the limit is checked: it is not stored.
func (c *Check) ByGenerator() bool { return c.generator }

// cannotTell is the word for a limit that a run does not decide.
const cannotTell = "cannot tell"

// Reason is the text of a check whose result stands before it.
func (c *Check) Reason() string { return strings.TrimPrefix(c.Text, cannotTell+": ") }

// Totals counts the events of the measurement, of a step or of a phase.
type Totals struct {
	measure.Counts
	Statuses measure.Statuses `json:"statuses,omitempty"`

	ElapsedS   float64 `json:"elapsed_s"`
	EventsPerS float64 `json:"events_per_s"`
	BytesPerS  float64 `json:"bytes_per_s"`
	// AnswersPerS counts batches that were answered, whatever the answer was, SentPerS and the next two what was
	// sent, without the drain. SentPerS is nil in a report of an older version, which has none of the four, and
	// of a run that only reads.
	AnswersPerS   float64  `json:"answers_per_s,omitempty"`
	SentPerS      *float64 `json:"sent_per_s,omitempty"`
	SentBytesPerS float64  `json:"sent_bytes_per_s,omitempty"`
	WireBytesPerS float64  `json:"wire_bytes_per_s,omitempty"`
	RateOf        string   `json:"rate_of"`
	InFlightMean  float64  `json:"in_flight_mean"`
	InFlightMax   uint64   `json:"in_flight_max"`            // at the ends of intervals
	InFlightPeak  uint64   `json:"in_flight_peak,omitempty"` // at any time; 0 if not counted

	RebalanceS float64 `json:"rebalance_s"`
	FetchS     float64 `json:"fetch_s"`
	Missing    uint64  `json:"missing"`
}

// SendRates are what was sent a second: events, their bytes, and bytes on the connections. A report of an older
// version has only the counts, with what was sent in the drain.
func (t *Totals) SendRates() (events, bytes, wire float64) {
	if t.SentPerS != nil {
		return *t.SentPerS, t.SentBytesPerS, t.WireBytesPerS
	}
	d := units.Seconds(t.ElapsedS)
	return measure.PerSecond(t.Sent, d), measure.PerSecond(t.Bytes, d), measure.PerSecond(t.WireBytes, d)
}

// AnswerRate is how many batches a second had some of the answers: the mean over the measurement, of which answers in
// the drain are no part. A report of an older version has only the counts.
func (t *Totals) AnswerRate(some uint64) float64 {
	if t.SentPerS != nil && t.Answered > 0 {
		return t.AnswersPerS * float64(some) / float64(t.Answered)
	}
	return measure.PerSecond(some, units.Seconds(t.ElapsedS))
}

// BatchRate is how many batches were sent, or read, a second, also without the drain.
func (t *Totals) BatchRate() float64 {
	if t.SentPerS != nil && t.Sent > 0 {
		return *t.SentPerS * float64(t.Batches) / float64(t.Sent)
	}
	return measure.PerSecond(t.Batches, units.Seconds(t.ElapsedS))
}

// MostInFlight is the highest known number of events in flight.
func (t *Totals) MostInFlight() uint64 { return max(t.InFlightMax, t.InFlightPeak) }

// The values of Totals.RateOf: what events_per_s counts.
const (
	RateAcked    = "acked"
	RateSent     = "sent" // nothing is acknowledged
	RateConsumed = "consumed"
)

// Times are the times of the measurement, of a step or of a phase. Null: the run has no such
// time.
type Times struct {
	Response      *measure.Summary `json:"response"`
	Service       *measure.Summary `json:"service"`
	SendDelay     *measure.Summary `json:"send_delay"`
	Batching      *measure.Summary `json:"batching"`
	Queueing      *measure.Summary `json:"queueing"`
	FailedService *measure.Summary `json:"failed_service"`
	EndToEnd      *measure.Summary `json:"end_to_end"`
	AckedToRead   *measure.Summary `json:"acked_to_read,omitempty"` // of consumer groups

	// The lower bounds: the times without the generator's own delays.
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
	// Holds says for a step whether it holds every limit that can be checked for a step. Null:
	// no such limit exists, or it is undecided.
	Holds     *bool  `json:"holds,omitempty"`
	Undecided bool   `json:"cannot_tell,omitempty"` // it may hold the limits
	Totals    Totals `json:"totals"`
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
	WithinS    float64          `json:"within_s"`     // how much of it lies in its phase
	Arrived    uint64           `json:"arrived"`      // in that part
	EventsPerS float64          `json:"events_per_s"` // Arrived over WithinS
	InFlight   uint64           `json:"in_flight"`
	LagEvents  int64            `json:"lag_events"`
	LagLogs    []int64          `json:"lag_events_by_log,omitempty"`
	Response   *measure.Summary `json:"response"`
	Service    *measure.Summary `json:"service"`
	SendDelay  *measure.Summary `json:"send_delay"`
	EndToEnd   *measure.Summary `json:"end_to_end"`
	Groups     []GroupInterval  `json:"groups,omitempty"` // in the order of the document's
	Generator  Usage            `json:"generator"`

	// Histograms are complete: each is a base64 HdrHistogram in microseconds, V2 compressed,
	// by the name of the time (response, service, send_delay, batching, queueing,
	// failed_service, end_to_end, acked_to_read, censored, unread).
	Histograms map[string]string `json:"histograms,omitempty"`

	times *measure.Set // histograms that are encoded when they are needed, instead of Histograms; nil: there are none such

	sum *Sum   // hash of its JSON, once encoded or read
	raw []byte // its JSON as read, in one line; nil: same as the fields
}

// A Gauge is a metric over the run that another program reported. Null: not reported then.
type Gauge struct {
	From   string   `json:"from"`
	Name   string   `json:"name"`
	Unit   string   `json:"unit"`
	Counts bool     `json:"counts"`
	Total  bool     `json:"total"`
	Stage  bool     `json:"stage,omitempty"`
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

// A Moment is something that happened at a known time and that may explain what was measured
// then.
type Moment struct {
	From    string  `json:"from"`
	Name    string  `json:"name"`
	AtS     float64 `json:"at_s"`
	LengthS float64 `json:"length_s"` // 0: none, or unknown
}

// Usage is what the generator's process consumed.
type Usage struct {
	CPUS         float64 `json:"cpu_s"`
	RSSBytes     uint64  `json:"rss_bytes"`
	GCPauses     uint64  `json:"gc_pauses"`
	GCPauseMaxUS float64 `json:"gc_pause_max_us"`
	GCCPUS       float64 `json:"gc_cpu_s"`
}

// Generator is what the run cost the generator's machine, over the measurement.
type Generator struct {
	Usage
	MaxRSSBytes   uint64  `json:"max_rss_bytes"`
	Processors    int     `json:"processors"`
	CPUShare      float64 `json:"cpu_share"`
	CPUUSPerEvent float64 `json:"cpu_us_per_event"`
	Busy          float64 `json:"busy"`
	BoundFull     float64 `json:"bound_full"`
	BoundFullMost float64 `json:"bound_full_most"`
	ReadBytes     uint64  `json:"read_bytes"`
}

// Stall describes the gaps in the answers.
type Stall struct {
	LongestS   float64 `json:"longest_s"`
	LongestAtS float64 `json:"longest_at_s"`
	Share      float64 `json:"share"`
	Count      uint64  `json:"count"`
	Spans      []Span  `json:"spans"` // the longest ones, in order of time; nil in older reports
}

// A Span is a stretch of time.
type Span struct {
	AtS     float64 `json:"at_s"`
	LengthS float64 `json:"length_s"`
}

// A Calibration is what this machine generated when that was measured. Reports cite it; it
// does not affect verdicts.
type Calibration struct {
	At          time.Time `json:"at"`
	NullPerS    float64   `json:"null_events_per_s"`    // to null://
	DiscardPerS float64   `json:"discard_events_per_s"` // into a discarding stand-in
	EventBytes  float64   `json:"event_bytes"`          // of the events it was measured with
	Target      string    `json:"target,omitempty"`     // the kind it was measured with
	Clients     int       `json:"clients,omitempty"`
	Server      string    `json:"server,omitempty"`  // the discarding stand-in's address, if it ran elsewhere
	Instead     string    `json:"instead,omitempty"` // it is of another workload: the command that measures the run's
	Version     string    `json:"version"`
}

// Generates is what this machine generates of the workload without a system: the same events,
// sent to null://. It is shown next to the result of a run at full speed and does not affect
// verdicts.
type Generates struct {
	EventsPerS   float64   `json:"events_per_s"`
	BytesPerS    float64   `json:"bytes_per_s"`
	At           time.Time `json:"at"`
	Cached       bool      `json:"cached"` // measured after an earlier run
	WorkloadHash string    `json:"workload_hash"`
}

// WriteJSON writes the document as indented JSON, a row after the other: the rows of a long
// run take much more memory as text. A document that was read keeps its unknown fields.
func (d *Document) WriteJSON(w io.Writer) error {
	v, err := d.encodable()
	if err != nil {
		return err
	}
	var head bytes.Buffer
	e := json.NewEncoder(&head)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write the report as JSON: %w", err)
	}
	before, after, found := head.Bytes(), []byte(nil), false
	if d.IsRun() {
		// Strings in JSON contain no line ends, so this is the field of the document.
		before, after, found = bytes.Cut(before, []byte("\n  \"intervals\": []"))
	}
	out := bufio.NewWriter(w)
	_, _ = out.Write(before) // the writer keeps errors for Flush
	if found {
		_, _ = out.WriteString("\n  \"intervals\": [")
		if err := d.writeRows(out); err != nil {
			return err
		}
		_, _ = out.WriteString("]")
	}
	_, _ = out.Write(after)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the report as JSON: %w", err)
	}
	return nil
}

// writeRows writes the intervals between the brackets of their list.
func (d *Document) writeRows(out *bufio.Writer) error {
	var row bytes.Buffer
	for i := range d.Intervals {
		line, err := d.Intervals[i].line()
		if err != nil {
			return err
		}
		if row.Reset(); i > 0 {
			row.WriteString(",")
		}
		row.WriteString("\n    ")
		if err := json.Indent(&row, line, "    ", "  "); err != nil {
			return fmt.Errorf("write the report as JSON: %w", err)
		}
		_, _ = out.Write(row.Bytes())
	}
	if len(d.Intervals) > 0 {
		_, _ = out.WriteString("\n  ")
	}
	return nil
}

// Read reads a document that WriteJSON wrote. Check reports whether it is
// unchanged.
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
