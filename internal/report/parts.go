package report

import (
	"fmt"
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/units"
)

// A Part is one load of a workload with several, or a stage of a pipeline, over the
// measurement. The second stage of a pipeline reads what the first one sent: its acked events
// were read, its response time is from when a read was due to its end, and its send delay is
// how late reads began.
type Part struct {
	Name   string  `json:"name"`
	Target string  `json:"target"`
	Op     string  `json:"op"`
	Weight float64 `json:"weight"`
	// Share is what the part should have of all events by its weight, and Got what it had of
	// those that were offered; as shares of one. Stages have no shares: Share is 0.
	Share    float64           `json:"share"`
	Got      float64           `json:"got"`
	Settings []Setting         `json:"settings"` // those that it does not share with the whole
	Classes  map[string]uint64 `json:"classes"`  // failed or unknown events, over the whole run
	Totals   Totals            `json:"totals"`
	Times
}

// A PartInput is what is known of a part before the run.
type PartInput struct {
	Target, Op    string
	Weight, Share float64
	Settings      []Setting
}

// part builds the section of a part. d has the totals of the whole.
func (b *builder) part(r *load.PartResult, in *PartInput, d *Document) Part {
	p := Part{
		Name: r.Name, Target: in.Target, Op: in.Op, Weight: in.Weight, Share: in.Share,
		Settings: orEmpty(in.Settings), Classes: r.Classes, Totals: b.totals(&r.Tally), Times: b.times(&r.Tally),
	}
	p.Totals.InFlightMax = 0 // counted for the whole only
	if d.Totals.Offered > 0 && !d.staged() {
		p.Got = float64(p.Totals.Offered) / float64(d.Totals.Offered)
	}
	return p
}

// fairness is Jain's index (Jain, Chiu and Hawe, 1984) of the shares of their offered events that
// parts got acked; nil if fewer than two were offered any.
func fairness(parts []Part) *float64 {
	var sum, squares, n float64
	for i := range parts {
		t := &parts[i].Totals
		if t.Offered == 0 {
			continue
		}
		x := float64(t.Acked) / float64(t.Offered)
		sum, squares, n = sum+x, squares+x*x, n+1
	}
	if n < 2 || squares == 0 {
		return nil
	}
	f := sum * sum / (n * squares)
	return &f
}

// PartsTitle is the heading of the parts: "Parts", or "Stages" of a pipeline.
func (d *Document) PartsTitle() string {
	if d.staged() {
		return "Stages"
	}
	return "Parts"
}

// staged reports whether the parts are the stages of a pipeline. Pipelines have no other parts.
func (d *Document) staged() bool { return d.Op == workload.Pipeline }

// stageRows is PartRows of a pipeline.
func (d *Document) stageRows() [][]string {
	rows := [][]string{{"stage", "begun", "done", "not done", "volume", "late p99", "response p50", "response p99", "service p99"}}
	for i := range d.Parts {
		p := &d.Parts[i]
		t := &p.Totals
		rows = append(rows, []string{
			layout.Clean(p.Name), units.FormatCountShort(t.Sent), units.FormatRate(t.EventsPerS), units.FormatCountShort(t.Offered - min(t.Acked, t.Offered)),
			units.FormatSize(int64(t.BytesPerS)) + "/s", percentile(p.SendDelay, 99), percentile(p.Response, 50), percentile(p.Response, 99), percentile(p.Service, 99),
		})
	}
	return rows
}

// PartRows is the table of parts, with headings in the first row; nil if there are none.
func (d *Document) PartRows() [][]string {
	if len(d.Parts) == 0 {
		return nil
	}
	if d.staged() {
		return d.stageRows()
	}
	rows := [][]string{{"part", "share", "share due", "events sent", d.Totals.RateOf, "not acked", "volume", "response p99", "service p50", "service p99"}}
	for i := range d.Parts {
		p := &d.Parts[i]
		t := &p.Totals
		rows = append(rows, []string{
			layout.Clean(p.Name), units.FormatPercent(p.Got), units.FormatPercent(p.Share), units.FormatCountShort(t.Sent), units.FormatRate(t.EventsPerS),
			units.FormatCountShort(t.Offered - min(t.Acked, t.Offered)), units.FormatSize(int64(t.BytesPerS)) + "/s",
			percentile(p.Response, 99), percentile(p.Service, 50), percentile(p.Service, 99),
		})
	}
	return rows
}

// parts prints a row for each part.
func (d *Document) parts(p *layout.Page) {
	rows := d.PartRows()
	if rows == nil {
		return
	}
	p.Section(d.PartsTitle())
	t := layout.Table{Headings: 2, Elastic: []int{0}}
	if d.staged() {
		t.Row("stage", "begun", "done", "not", "volume", "late", "response", "response", "service")
		t.Row("", "", "", "done", "", "p99", "p50", "p99", "p99")
	} else {
		t.Row("part", "share", "share", "events", d.Totals.RateOf, "not", "volume", "response", "service", "service")
		t.Row("", "had", "due", "sent", "", "acked", "", "p99", "p50", "p99")
	}
	for _, r := range rows[1:] {
		t.Row(r...)
	}
	p.Table(&t)
	if d.Fairness != nil && *d.Fairness < 0.9995 {
		p.Note(fmt.Sprintf("fairness %.3f: 1 if every part got the same share of its events acked", *d.Fairness))
	}
}

// partSections prints what only the complete report has of each part: its settings, failures
// and times.
func (d *Document) partSections(p *layout.Page) {
	for i := range d.Parts {
		part := &d.Parts[i]
		p.Section(strings.TrimSuffix(d.PartsTitle(), "s") + " " + layout.Clean(part.Name))
		p.Pair("", "load", layout.Clean(part.Op+" "+part.Target))
		for _, s := range part.Settings {
			if !s.Default && !s.Minor {
				p.Pair("", layout.Clean(s.Name), layout.Clean(s.Value))
			}
		}
		t := &part.Totals
		p.Pair("", "events", fmt.Sprintf("%s offered, %s sent, %s acked, %s failed, %s unknown, %s dropped, %s unsent",
			units.FormatCount(t.Offered), units.FormatCount(t.Sent), units.FormatCount(t.Acked), units.FormatCount(t.Failed),
			units.FormatCount(t.Unknown), units.FormatCount(t.Dropped), units.FormatCount(t.Unsent)))
		if t.RateOf != RateSent {
			p.Pair("", "in flight", units.FormatCountShort(uint64(t.InFlightMean+0.5))+" on average")
		}
		cols := slices.DeleteFunc(part.Measured(), func(c Time) bool { return c.Name == failedService || c.Sum.Count == 0 })
		if len(cols) > 0 {
			p.Line("")
			p.Table(timeTable(cols))
		}
	}
}
