package topics

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"carronade/internal/kafka/cluster"
	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/measure"
	"carronade/units"
)

// topicsSchema names the form of the JSON of operations on topics.
const topicsSchema = "carronade.topics/1"

// A topicsReport is the result of operations on topics, as JSON and text. An
// operation is one topic (or one listing), a request carries one or several.
type topicsReport struct {
	Schema       string            `json:"schema"`
	Op           string            `json:"op"`
	Operations   uint64            `json:"operations"`
	Done         uint64            `json:"done"`
	Failed       uint64            `json:"failed"`
	Unknown      uint64            `json:"unknown"` // without a certain answer
	Unsent       uint64            `json:"unsent"`
	Requests     uint64            `json:"requests"`
	ElapsedS     float64           `json:"elapsed_s"`
	PerS         float64           `json:"operations_per_s"`
	Concurrency  int               `json:"concurrency"`
	PerRequest   int               `json:"per_request"`
	InFlightMean float64           `json:"in_flight_mean"`
	Service      *measure.Summary  `json:"service"`
	Failing      *measure.Summary  `json:"failed_service"`
	Response     *measure.Summary  `json:"response"`
	Events       uint64            `json:"events"`
	Bytes        uint64            `json:"bytes"`
	BytesWire    bool              `json:"bytes_as_travelled"`
	Classes      map[string]uint64 `json:"classes"`
	Failures     []measure.Failure `json:"failures"`
	Topics       []topicRow        `json:"topics"`
	Interrupted  bool              `json:"interrupted"`
}

type topicRow struct {
	Name       string            `json:"name"`
	ID         string            `json:"id,omitempty"`
	Partitions int               `json:"partitions"`
	Replicas   int               `json:"replicas"`
	Internal   bool              `json:"internal,omitempty"`
	Leaders    string            `json:"leaders,omitempty"`
	Settings   map[string]string `json:"settings,omitempty"`
	Events     uint64            `json:"events,omitempty"`
	Bytes      uint64            `json:"bytes,omitempty"`
	ElapsedS   float64           `json:"elapsed_s,omitempty"`
}

func topicsDocument(r *cluster.TopicResult) *topicsReport {
	d := &topicsReport{
		Schema: topicsSchema, Op: r.Op, Operations: r.Operations, Done: r.Done, Failed: r.Failed, Unknown: r.Unknown, Unsent: r.Unsent,
		Requests: r.Requests, ElapsedS: r.Elapsed.Seconds(), PerS: r.PerSecond,
		Concurrency: r.Concurrency, PerRequest: r.PerRequest, InFlightMean: r.BusyMean,
		Service: measure.Summarize(r.Service, nil, nil), Response: measure.Summarize(r.Response, r.Censored, nil),
		Failing: measure.Summarize(r.FailedService, nil, nil),
		Events:  r.Events, Bytes: r.Bytes, BytesWire: r.BytesWire,
		Classes: r.Classes, Failures: r.Failures, Topics: []topicRow{}, Interrupted: r.Interrupted,
	}
	if d.Failures == nil {
		d.Failures = []measure.Failure{}
	}
	for _, t := range r.Topics {
		d.Topics = append(d.Topics, topicRow{
			Name: t.Name, ID: t.ID, Partitions: t.Partitions, Replicas: t.Replicas, Internal: t.Internal,
			Leaders: t.Leaders, Settings: t.Settings, Events: t.Events, Bytes: t.Bytes, ElapsedS: t.Elapsed.Seconds(),
		})
	}
	slices.SortFunc(d.Topics, func(a, b topicRow) int { return strings.Compare(a.Name, b.Name) })
	return d
}

// pastTense is the past tense of each operation.
var pastTense = map[string]string{
	cluster.OpCreateTopics: "made", cluster.OpListTopics: "listed", cluster.OpDescribeTopics: "described",
	cluster.OpDeleteTopics: "deleted", cluster.OpDeleteRecords: "emptied", cluster.OpReadTopics: "read",
}

func (d *topicsReport) text(w io.Writer, style layout.Style) {
	word, code := report.Done, layout.Green
	switch {
	case d.Interrupted:
		word, code = report.CutShort, layout.Yellow
	case d.Failed+d.Unknown > 0:
		word, code = report.Failed, layout.Red
	}
	fmt.Fprintf(w, "%s  %s\n", style.Paint(code, word), d.headline())
	if d.Failed > 0 {
		fmt.Fprintf(w, "  failed    %s\n", units.FormatCount(d.Failed))
	}
	if d.Unknown > 0 {
		fmt.Fprintf(w, "  unknown   %s, without a certain answer\n", units.FormatCount(d.Unknown))
	}
	for _, f := range d.Failures {
		fmt.Fprintf(w, "    %6s  %s: %s\n", units.FormatCount(f.Events), f.Class, f.Text)
	}
	if d.Unsent > 0 {
		fmt.Fprintf(w, "  unsent    %s\n", units.FormatCount(d.Unsent))
	}
	if d.Op == cluster.OpReadTopics {
		fmt.Fprintf(w, "  events    %s, %s%s, %s\n", units.FormatCount(d.Events), units.FormatSize(int64(d.Bytes)),
			map[bool]string{true: " on the wire"}[d.BytesWire], units.FormatRate(measure.PerSecond(d.Events, units.Seconds(d.ElapsedS))))
	}
	if d.Requests > 1 {
		fmt.Fprintf(w, "  requests  %s, %d topics each, %.3g in flight on average\n", units.FormatCount(d.Requests), d.PerRequest, d.InFlightMean)
	}
	times(w, "service", d.Service)
	times(w, "response", d.Response)
	d.table(w)
}

// headline says what was done, how often and how fast.
func (d *topicsReport) headline() string {
	what, n := "topics", units.FormatCount(d.Done)+" of "+units.FormatCount(d.Operations+d.Unsent)
	switch {
	case d.Op != cluster.OpListTopics:
	case d.Done == 1 && d.Operations == 1:
		n = units.FormatCount(uint64(len(d.Topics)))
	default:
		what = "times"
	}
	text := fmt.Sprintf("%s %s %s in %s", pastTense[d.Op], n, what, took(d.ElapsedS))
	if d.Done > 1 {
		text += ", " + units.FormatRate(d.PerS)
	}
	return text
}

// whereColumn is where the values begin, as at the end of a run.
const whereColumn = 16

// where writes where the report is.
func where(w io.Writer, more []report.Condition) {
	for i, m := range more {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, layout.PadRight("  "+m.Name, whereColumn)+layout.Clean(m.Text))
	}
}

// times writes the times of requests, if there were several.
func times(w io.Writer, name string, s *measure.Summary) {
	if s == nil || s.Count < 2 {
		return
	}
	fmt.Fprintf(w, "  %-9s", name)
	for _, p := range s.Percentiles {
		if p.P == 50 || p.P == 99 {
			least := map[bool]string{true: ">= "}[p.AtLeast]
			fmt.Fprintf(w, " p%g %s%s,", p.P, least, units.FormatDuration(p.D))
		}
	}
	fmt.Fprintf(w, " max %s a request\n", units.FormatDuration(time.Duration(s.Max*float64(time.Microsecond))))
}

// table writes the result of listing or describing topics.
func (d *topicsReport) table(w io.Writer) {
	if len(d.Topics) == 0 {
		return
	}
	fmt.Fprintln(w)
	width := len("topic")
	for _, t := range d.Topics {
		width = max(width, len(t.Name))
	}
	width = min(width, 40)
	switch d.Op {
	case cluster.OpReadTopics:
		fmt.Fprintf(w, "%-*s %10s %14s %12s %10s\n", width, "topic", "partitions", "events", "bytes", "took")
	default:
		fmt.Fprintf(w, "%-*s %10s %8s\n", width, "topic", "partitions", "replicas")
	}
	for _, t := range d.Topics {
		switch d.Op {
		case cluster.OpReadTopics:
			fmt.Fprintf(w, "%-*s %10d %14s %12s %10s\n", width, t.Name, t.Partitions, units.FormatCount(t.Events), units.FormatSize(int64(t.Bytes)), took(t.ElapsedS))
		default:
			fmt.Fprintf(w, "%-*s %10d %8d\n", width, t.Name, t.Partitions, t.Replicas)
		}
		if t.Leaders != "" {
			fmt.Fprintf(w, "  leaders   %s\n", t.Leaders)
		}
		var settings []string
		for _, k := range slices.Sorted(maps.Keys(t.Settings)) {
			settings = append(settings, k+"="+t.Settings[k])
		}
		for i, line := range layout.Wrap(strings.Join(settings, " "), layout.Columns-13) {
			if line != "" {
				fmt.Fprintf(w, "  %-10s%s\n", map[bool]string{true: "settings"}[i == 0], line)
			}
		}
	}
}

func took(seconds float64) string {
	return units.FormatDuration(units.Seconds(seconds))
}
