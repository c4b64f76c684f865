package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"carronade/internal/layout"
)

// Text writes the complete report: the result first, what to do next, then
// every number. It fits 80 columns and has ANSI codes only if the style has
// them. The error is that of w.
func (d *Document) Text(w io.Writer, style layout.Style) error {
	p := &layout.Page{Style: style}
	if !d.IsRun() {
		d.ownText(p, math.MaxInt-1)
		p.Section("Workload")
		for _, c := range d.Conditions() {
			p.Pair("", c.Name, c.Text)
		}
		d.machines(p)
		return p.To(w)
	}
	d.answerText(p)
	title := d.Op + " " + d.Target
	if d.Repetitions > 1 {
		title += fmt.Sprintf("  (%d of %d)", d.Repetition, d.Repetitions)
	}
	p.Title(title)
	d.head(p)
	p.Section("Workload")
	for _, c := range d.Conditions() {
		p.Pair("", c.Name, c.Text)
	}
	d.events(p)
	d.parts(p)
	d.groups(p, len(d.Groups))
	d.backlog(p, false)
	d.steps(p, len(d.Steps))
	d.times(p)
	d.partSections(p)
	d.series(p, false)
	d.intervalTable(p)
	d.faults(p, false, false)
	d.gauges(p)
	d.stages(p)
	d.answers(p)
	d.failures(p)
	d.ledger(p, mostRows)
	d.logs(p)
	d.members(p, mostRows)
	d.indexedText(p)
	d.system(p)
	d.underTest(p)
	d.clients(p)
	d.generator(p)
	d.fleet(p)
	d.machines(p)
	return p.To(w)
}

// ownText prints what a report that measured nothing has in place of measurements: a search, or a
// scenario with at most that many of its steps.
func (d *Document) ownText(p *layout.Page, most int) {
	if d.Search != nil {
		d.searchText(p)
		return
	}
	d.scenarioText(p, most)
}

// markColors are the colors of verdicts.
var markColors = map[Mark]string{Open: layout.Yellow, Caution: layout.Yellow, Bad: layout.Red}

// head prints the result and the verdicts.
func (d *Document) head(p *layout.Page) {
	p.Line("")
	for _, l := range layout.Wrap(d.Headline(), layout.Columns-2) {
		p.Line("  " + l)
	}
	p.Line("")
	verdicts(p, d.Verdicts())
}

// verdicts prints a label and the sentences of each verdict.
func verdicts(p *layout.Page, of []Verdict) {
	for _, v := range of {
		label := v.Label
		for _, s := range v.Sentences() {
			p.Pair(markColors[v.Mark], label, s)
			label = ""
		}
	}
}

// events prints the counts, and next to them the other numbers.
func (d *Document) events(p *layout.Page) {
	p.Section("Events")
	left, right := layout.Table{MinWidth: 9}, layout.Table{MinWidth: 9}
	var remarks []string // remarks of the right block
	for _, r := range d.Counts() {
		if r.Always || r.Value > 0 {
			left.Row(r.Label, r.Text(), r.Remark)
		}
	}
	for _, r := range d.Figures()[2:] { // the headline has the first two
		if r.Name != "cpu_us_per_event" && (r.Always || r.Value != 0) {
			right.Row(r.Label, r.Text())
			remarks = append(remarks, r.Remark)
		}
	}
	l, r := left.Lines(0, p.Style), right.Lines(0, p.Style)
	edge := 30
	for _, line := range l {
		edge = max(edge, layout.Width(line))
	}
	for i := range max(len(l), len(r)) {
		a, b := "", ""
		if i < len(l) {
			a = l[i]
		}
		if i < len(r) {
			b = r[i]
			if remark := remarks[i]; remark != "" && 2+edge+2+layout.Width(b)+2+layout.Width(remark) <= layout.Columns {
				b += "  " + remark
			}
		}
		p.Line("  " + layout.PadRight(a, edge) + "  " + b)
	}
	if len(d.Steps) > 0 {
		p.Note("all steps together; each on its own below")
	}
	if len(d.Parts) > 0 && !d.staged() {
		p.Note("all parts together; each on its own below")
	}
}

// steps prints a row per step, up to most.
func (d *Document) steps(p *layout.Page, most int) {
	rows := d.StepRows()
	if rows == nil {
		return
	}
	p.Section("Steps")
	t := layout.Table{Headings: 2, Elastic: []int{0}, Middle: true}
	t.Row("step", "target", d.Totals.RateOf, "response", "response", "service", "delay", "in", "not")
	t.Row("", "", "", "p50", "p99", "p99", "p99", "flight", "acked")
	for _, r := range rows[1:min(len(rows), most+1)] {
		t.Row(r...)
	}
	p.Table(&t)
	if n := len(d.Steps) - most; n > 0 {
		p.Note(fmt.Sprintf("and %d more", n))
	}
}

// tableTimes are the times in tables; the time of failures is printed with the
// failures.
func (d *Document) tableTimes() []Time {
	var out []Time
	for _, t := range d.Measured() {
		if t.Name != failedService {
			out = append(out, t)
		}
	}
	return out
}

// times prints the table of all times, a row per percentile.
func (d *Document) times(p *layout.Page) {
	cols := d.tableTimes()
	if len(cols) == 0 && d.Totals.RateOf == RateConsumed {
		return // consumers have times only in a round trip
	}
	p.Section("Times")
	if len(cols) == 0 {
		p.Note("nothing was answered, so there are none")
		return
	}
	if len(d.Steps) > 0 {
		p.Note("all steps together")
	}
	t := layout.Table{Headings: 2, Gap: 1, MinWidth: 10}
	titles, of := []string{""}, []string{""}
	for _, c := range cols {
		titles, of = append(titles, c.Title), append(of, c.Of)
	}
	t.Row(titles...)
	t.Row(of...)
	for _, r := range TimeRows(cols) {
		t.Row(r...)
	}
	p.Table(&t)
	for _, n := range d.timeNotes(cols, false) {
		p.Note(n)
	}
}

// failures prints failures by class, then their texts.
func (d *Document) failures(p *layout.Page) {
	rows := d.FailureRows()
	if len(rows) == 0 {
		return
	}
	p.Section("Failures")
	for _, f := range rows {
		p.Pair("", f.Class, f.text())
	}
	if s := d.FailedService; !s.IsEmpty() {
		p50, _ := s.At(50)
		p99, _ := s.At(99)
		p.Note(fmt.Sprintf("batches that failed took %s at p50, %s at p99, %s at most", Percentile(p50), Percentile(p99), Clock(s.Max)))
	}
	p.Note("counted over the whole run, warm-up and drain included")
}

func (f *FailureRow) text() string {
	text := f.Events + " events"
	if f.Events == "1" {
		text = "1 event"
	}
	switch f.Batches {
	case "":
	case "1":
		text += " in 1 batch"
	default:
		text += " in " + f.Batches + " batches"
	}
	if f.Text != "" {
		text += ": " + f.Text
	}
	return text
}

// tidy removes the padding for columns.
func tidy(s string) string { return strings.Join(strings.Fields(s), " ") }

func joinNonEmpty(parts ...string) string {
	var out []string
	for _, s := range parts {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, ", ")
}
