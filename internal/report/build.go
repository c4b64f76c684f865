package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"carronade/internal/verdict/trust"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// Input is everything a report is made of. Nil and zero fields are left out.
type Input struct {
	Version string // of the program
	RunID   string
	ID      string // of the report; see IDOf

	Target      string // the URL, without secrets
	Op          string
	Labels      map[string]string
	Note        string
	Attachments []Attachment
	Repetition  int // from 1
	Repetitions int
	Replaces    string

	Workload any       // resolved; any value that encodes as JSON
	Settings []Setting // the same, as rows

	Result      *load.Result
	Series      []Interval // Result.Intervals, if already encoded; nil: Build encodes them
	Percentiles []float64  // beyond the standard ones
	Processors  int        // that the generator may use

	Trust       measure.Trust
	Ledger      *measure.Ledger
	Gauges      []measure.Gauge
	Moments     []measure.Moment
	Indexed     *measure.Indexed
	System      *System     // the system under test, if any
	Hosts       []any       // other machines, as described elsewhere
	Checks      []Check     // of the limits that were set
	Parts       []PartInput // of the workload, in the order of the result's
	Limits      []workload.Limit
	Aborted     string   // the limit that ended the run; "" if none did
	Problems    []string // output that could not be written
	Warnings    []string
	Notice      string // what the headline begins with, unless the system failed
	Facts       map[string]any
	Encoding    *measure.Encoding // nil: nothing was sent, or it is not known
	Undecoded   string            // how events that were read were counted, if they were not decoded
	Clients     []measure.Client
	Host        any // encodes as JSON; a fmt.Stringer is shown by its text
	Others      *trust.Others
	Calibration *Calibration
	Samples     *Samples
	Trace       *Trace
	Faults      *Faults
	Backlog     *ReadBacklog

	Agents []Agent       // the generators, if there are several
	Skew   time.Duration // between their starts, at most
	Apart  time.Duration // the largest error of end-to-end times: they are on the clocks of two generators
}

// Build makes the document. It keeps parts of the input.
func Build(in Input) *Document {
	r := in.Result
	b := builder{Series: Series{Mode: r.Mode, Unanswered: r.Unanswered, Percentiles: in.Percentiles}, rows: r.Intervals}
	d := &Document{
		Schema: Schema, ID: in.ID, Version: in.Version, RunID: in.RunID,
		Target: in.Target, Op: in.Op, Mode: r.Mode, Labels: in.Labels, Note: in.Note, Attachments: in.Attachments,
		Repetition: max(in.Repetition, 1), Repetitions: max(in.Repetitions, 1), Replaces: in.Replaces,
		StartedAt: r.Started.Round(0), EndedAt: r.Ended.Round(0), // without the monotonic clock, which JSON does not keep
		Stopped: r.Stopped,
		Partial: r.Stopped == load.Interrupted && !r.Whole || r.Stopped == load.ByTarget || r.Stopped == load.ByMemory || r.Stopped == load.BySystem || r.Stopped == load.ByLoss || r.Stopped == load.ByGenerator || r.Stopped == load.ByLease,
		Trust:   in.Trust, Steady: r.Steady,
		Checks: checks(in), Problems: orEmpty(in.Problems), Warnings: orEmpty(in.Warnings), Notice: in.Notice,
		Workload: in.Workload, Settings: orEmpty(in.Settings),
		Totals: b.totals(&r.Measurement), Times: b.times(&r.Measurement),
		Steps:    []Phase{},
		Phases:   []Phase{},
		Freezes:  freezes(r),
		Stall:    stall(&r.Stall),
		Failures: orEmpty(r.Failures), Classes: r.Classes,
		Gauges:  make([]Gauge, 0, len(in.Gauges)),
		Indexed: indexed(in.Indexed), System: in.System, Hosts: orEmpty(in.Hosts),
		Ledger: in.Ledger, Logs: orEmpty(r.Logs), Members: r.Members, LagEvents: map[string]int64{},
		Calibration: in.Calibration, Host: in.Host, Others: in.Others, Facts: in.Facts, Encoding: in.Encoding, Undecoded: in.Undecoded, Clients: in.Clients,
		Samples: in.Samples, Trace: in.Trace, Faults: in.Faults, Backlog: in.Backlog,
		Fleet: fleetOf(in.Agents, in.Skew, in.Apart),
	}
	if d.Classes == nil {
		d.Classes = map[string]uint64{}
	}
	if d.Facts == nil {
		d.Facts = map[string]any{}
	}
	d.Trust.Level = d.TrustLevel()
	d.Trust.Reasons, d.Trust.Doubts, d.Trust.Notes = orEmpty(d.Trust.Reasons), orEmpty(d.Trust.Doubts), orEmpty(d.Trust.Notes)
	d.Trust.Bounds = orEmpty(d.Trust.Bounds)
	if len(r.Steps) > 1 {
		for i := range r.Steps {
			d.Steps = append(d.Steps, b.phase(&r.Steps[i]))
		}
	}
	for i := range min(len(r.Parts), len(in.Parts)) {
		d.Parts = append(d.Parts, b.part(&r.Parts[i], &in.Parts[i], d))
	}
	d.Groups = b.groups(r.Groups)
	if !d.staged() {
		d.Fairness = fairness(d.Parts)
	}
	for _, t := range []*measure.Tally{&r.Warmup, &r.Measurement, &r.Drain} {
		if t.End > t.Start || !t.Counts.IsZero() {
			d.Phases = append(d.Phases, b.phase(t))
		}
	}
	if d.Intervals = in.Series; d.Intervals == nil {
		d.Intervals = make([]Interval, len(r.Intervals))
		for i := range r.Intervals {
			d.Intervals[i] = b.Interval(&r.Intervals[i])
		}
	}
	slices.SortStableFunc(d.Intervals, func(a, b Interval) int { return cmp.Compare(a.StartS, b.StartS) })
	d.stageBacklog()
	for i := range in.Gauges {
		d.Gauges = append(d.Gauges, gauge(&in.Gauges[i], &r.Measurement))
	}
	if share := d.passedOn(); share != nil {
		d.Gauges = append(d.Gauges, gauge(share, &r.Measurement))
	}
	for _, m := range in.Moments {
		d.Moments = append(d.Moments, Moment{From: m.From, Name: m.Name, AtS: m.At.Seconds(), LengthS: m.Length.Seconds()})
	}
	for _, l := range r.Logs {
		d.LagEvents[l.Log] = l.Lag
	}
	d.Totals.Missing = r.Missing
	if r.Mode == load.Consuming {
		d.Totals.RebalanceS = r.Rebalance.Seconds()
		d.Totals.FetchS = max(d.Totals.ElapsedS-d.Totals.RebalanceS, 0)
	}
	d.Generator = generator(in, d.Totals)
	if h, ok := in.Host.(fmt.Stringer); ok {
		d.HostText = h.String()
	}
	if d.Ledger != nil {
		d.Checks = append(d.Checks, d.verified())
	}
	d.Checks = append(d.Checks, d.CheckLimits(in.Limits)...)
	d.markSteps(in.Limits)
	for i := range d.Checks {
		// With steps, the one that broke the limit is the answer.
		if c := &d.Checks[i]; in.Aborted != "" && c.Name == in.Aborted && c.OK && len(d.Steps) == 0 {
			c.OK, c.CannotTell = false, true
			c.Text += ", but it was broken when the run was ended"
		}
	}
	return d
}

// Taken is the name of the check that the system took any event. Only a run without one has
// the check.
const Taken = "taken"

// Verify is the name of the check of the read-back.
const Verify = "verify"

// Dead returns the failed check that the system took any event.
func (d *Document) Dead() (Check, bool) {
	i := slices.IndexFunc(d.Checks, func(c Check) bool { return c.Name == Taken && !c.OK })
	if i < 0 {
		return Check{}, false
	}
	return d.Checks[i], true
}

// Limits are the checks except the one that Dead returns, which is shown first.
func (d *Document) Limits() []Check {
	return slices.DeleteFunc(slices.Clone(d.Checks), func(c Check) bool { return c.Name == Taken })
}

// checks are the limits of the user and those that every run has: events were taken, most of them
// have a certain answer, the requested count was reached, and the verified events are complete.
func checks(in Input) []Check {
	out := orEmpty(in.Checks)
	r := in.Result
	if text, dead := trust.Dead(r); dead {
		if len(r.Failures) > 0 {
			text += " (" + r.Failures[0].Text + ")"
		}
		out = slices.Insert(slices.Clone(out), 0, Check{Name: Taken, Text: text})
	}
	if c := &r.Measurement.Counts; !r.Unanswered && 2*c.Unknown > c.Sent && !unfinished(r) {
		out = append(out, Check{Name: "answered", Text: fmt.Sprintf("%s of %s without a certain answer", units.FormatCount(c.Unknown), units.Plural(c.Sent, "event"))})
	}
	if r.Missing > 0 {
		out = append(out, Check{Name: "count", Text: fmt.Sprintf("%s fewer than requested", units.Plural(r.Missing, "event"))})
	}
	return out
}

// unfinished reports whether a run was interrupted before an answer could come.
func unfinished(r *load.Result) bool {
	return r.Stopped == load.Interrupted && r.Measurement.Length() < trust.LeastMeasurement
}

func generator(in Input, t Totals) Generator {
	u := in.Result.Usage
	g := Generator{
		Usage: usage(u), MaxRSSBytes: u.MaxRSS, Processors: in.Processors,
		Busy: in.Result.Busy, BoundFull: in.Result.Full, BoundFullMost: in.Result.Fullest, ReadBytes: in.Result.WireRead,
	}
	if in.Processors > 0 && t.ElapsedS > 0 {
		g.CPUShare = g.CPUS / (t.ElapsedS * float64(in.Processors))
	}
	if n := max(t.Sent, t.Consumed); n > 0 {
		g.CPUUSPerEvent = g.CPUS * 1e6 / float64(n)
	}
	return g
}

type builder struct {
	Series
	rows []measure.Interval
}

func (b *builder) phase(t *measure.Tally) Phase {
	return Phase{
		Name: t.Name, Rate: t.Rate, StartS: t.Start.Seconds(), EndS: t.End.Seconds(),
		Totals: b.totals(t), Times: b.times(t),
	}
}

func (b *builder) totals(t *measure.Tally) Totals {
	out := Totals{
		Counts: t.Counts, Statuses: t.Statuses, ElapsedS: t.Length().Seconds(), InFlightMean: t.InFlight, InFlightMax: b.inFlightMax(t), InFlightPeak: t.InFlightPeak,
		EventsPerS: t.EventsPerSecond(), BytesPerS: t.BytesPerSecond(), AnswersPerS: t.AnswersPerSecond(), RateOf: b.rateOf(),
	}
	if out.RateOf != RateConsumed {
		sent, bytes, wire := t.SentPerSecond()
		out.SentPerS, out.SentBytesPerS, out.WireBytesPerS = &sent, bytes, wire
	}
	if out.RateOf == RateSent {
		out.EventsPerS, out.BytesPerS = *out.SentPerS, out.SentBytesPerS
	}
	return out
}

// inFlightMax is the maximum of in-flight events at the ends of the phase's intervals.
func (b *builder) inFlightMax(t *measure.Tally) uint64 {
	most := uint64(0)
	for i := range b.rows {
		if end := b.rows[i].End; end > t.Start && end <= t.End {
			most = max(most, b.rows[i].InFlight)
		}
	}
	return most
}

// gauge adds to a gauge its statistics over the measurement.
func gauge(g *measure.Gauge, measurement *measure.Tally) Gauge {
	out := Gauge{
		From: g.From, Name: g.Name, Unit: g.Unit, Counts: g.Counts, Total: g.Total, Stage: g.Stage,
		Before: g.Before, After: g.After, Missed: g.Missed, Points: make([]Point, 0, len(g.Points)),
	}
	if mean, most, ok := g.Within(measurement.Start, measurement.End); ok && !g.Total {
		out.Mean, out.Max = &mean, &most
	}
	for _, p := range g.Points {
		out.Points = append(out.Points, Point{AtS: p.At.Seconds(), Value: p.Value})
	}
	return out
}

func (b *builder) times(t *measure.Tally) Times {
	return Times{
		Response:      b.summary(b.scheduled() && b.answered(), t.Response, t.Censored),
		Service:       b.summary(b.answered(), t.Service, nil),
		SendDelay:     b.summary(b.scheduled(), t.SendDelay, nil),
		Batching:      b.summary(b.scheduled(), t.Batching, nil),
		Queueing:      b.summary(b.scheduled(), t.Queueing, nil),
		FailedService: b.summary(b.answered(), t.FailedService, nil),
		EndToEnd:      b.summary(t.UnreadAges != nil, t.EndToEnd, t.UnreadAges),
		AckedToRead:   b.summary(false, t.AckedToRead, nil),
		ResponseLower: b.summary(b.scheduled() && b.answered(), t.Lower.Response, t.Censored),
		ServiceLower:  b.summary(b.answered(), t.Lower.Service, nil),
		EndToEndLower: b.summary(t.UnreadAges != nil, t.Lower.EndToEnd, t.UnreadAges),
	}
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
