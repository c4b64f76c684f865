package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/measure"
	"carronade/units"
)

// Row limits of the brief report; the rest is counted.
const (
	briefSteps    = 10
	briefFailures = 3
	briefLogs     = 3
	briefLines    = 5 // last output of a system that exited
)

// The most lines of the brief report when all is well, and otherwise.
const (
	wellLines = 22
	mostLines = 30
)

// A brevity says what the brief report leaves out to fit: each leaves out what those before it do, too.
type brevity int

const (
	wholeBrief    brevity = iota
	withoutWaits          // the times that the generator itself added, except the send delay
	withoutLedger         // the table of the ledger: the answer and the numbers say what is wrong
	withoutSeries
	fewFaultTexts // the sentences on each fault
	fewUnusual    // what is unusual and least important: it is counted
)

// Brief writes the report for one screen: the answer, the numbers, what is unusual, the times, the series. The last
// lines say where to see more. The error is that of w.
func (d *Document) Brief(w io.Writer, style layout.Style, more ...Condition) error {
	if !d.IsRun() {
		p := &layout.Page{Style: style}
		d.ownText(p, briefScenario)
		d.footer(p, more)
		return p.To(w)
	}
	unusual := d.unusual(style)
	most := mostLines
	if a := d.Answer(); a.Mark == Good && unusual == "" && d.Faults == nil && d.TrustLevel() == measure.Trusted {
		most = wellLines
	}
	for level := wholeBrief; ; level++ {
		p := d.brief(style, unusual, level, more)
		over := strings.Count(p.String(), "\n") - most
		if over <= 0 {
			return p.To(w)
		}
		if level == fewUnusual {
			return d.brief(style, fewer(unusual, over), level, more).To(w)
		}
	}
}

// fewer leaves out the last parts of what is unusual, of some lines at least, and counts them. The first three lines stay.
func fewer(unusual string, lines int) string {
	all := strings.SplitAfter(strings.TrimSuffix(unusual, "\n"), "\n")
	keep, left := max(len(all)-lines-1, 3), 0
	for n := len(all) - 1; n > 0; n-- {
		if text := strings.TrimLeft(all[n], "\x1b[0123456789m"); strings.HasPrefix(text, strings.Repeat(" ", labelColumn)) {
			continue // it belongs to the line above
		}
		left++
		if n <= keep {
			p := layout.Page{}
			p.Pair("", "and "+units.FormatCount(uint64(left))+" more", "with --full")
			return strings.Join(all[:n], "") + p.String()
		}
	}
	return unusual
}

func (d *Document) brief(style layout.Style, unusual string, level brevity, more []Condition) *layout.Page {
	p := &layout.Page{Style: style}
	d.answerText(p)
	for _, l := range layout.Wrap(strings.Join(d.results(), ", "), layout.Columns) {
		p.Line(l)
	}
	p.Line(p.Paint(layout.Bold, d.briefTitle()))
	if unusual != "" {
		p.Line("")
		p.WriteString(unusual)
	}
	d.parts(p)
	d.groups(p, mostGroups)
	d.backlog(p, true)
	if len(d.Steps) > 0 {
		d.steps(p, briefSteps)
	} else {
		d.briefTimes(p, level)
	}
	if level < withoutSeries {
		d.series(p, true)
	}
	d.briefLedger(p, level)
	d.faults(p, true, level >= fewFaultTexts)
	d.fleet(p)
	d.footer(p, more)
	if text := d.noLimit(); text != "" {
		p.Note("exit code " + text)
	}
	return p
}

// footer prints the labels, and the id of the report and where it is.
func (d *Document) footer(p *layout.Page, more []Condition) {
	p.Line("")
	if d.Note != "" {
		p.Pair("", "noted", layout.Cut(layout.Clean(d.Note), layout.Columns-labelColumn))
	}
	if len(d.Labels) > 0 {
		p.Pair("", "labels", layout.Cut(layout.Clean(strings.Join(d.labels(), ", ")), layout.Columns-labelColumn))
	}
	for _, m := range more { // paths and commands are copied, so they are not wrapped
		p.Line(layout.PadRight("  "+m.Name, labelColumn) + layout.Clean(m.Text))
	}
}

// briefTitle is the target and the workload in one line. If space is short, the target is cut
// first, since the user knows it.
func (d *Document) briefTitle() string {
	const room = 26 // reserved for the workload
	title := layout.Clean(d.Op + " " + d.Target)
	of := ""
	if d.Repetitions > 1 {
		of = fmt.Sprintf(" (%d of %d)", d.Repetition, d.Repetitions)
	}
	title = layout.CutMiddle(title, layout.Columns-layout.Width(of)-2-room)
	load := d.Load(layout.Columns - layout.Width(title+of) - 2)
	if load == "" {
		return title + of
	}
	return title + ", " + load + of
}

func (d *Document) briefTimes(p *layout.Page, level brevity) {
	cols := d.tableTimes()
	if level >= withoutWaits {
		cols = slices.DeleteFunc(cols, func(t Time) bool { return !t.Main && t.Name != "send_delay" })
	}
	if len(cols) == 0 {
		return
	}
	p.Line("")
	p.Table(timeTable(cols))
	for _, n := range d.timeNotes(cols, true) {
		p.Note(n)
	}
}

// unusual is what is worth knowing only in some runs.
func (d *Document) unusual(style layout.Style) string {
	u := layout.Page{Style: style}
	// A warning says, too, that the topic was created, and what to do.
	created := strings.HasPrefix(d.Notice, "the topic ") && strings.HasSuffix(d.Notice, " and the broker created it") &&
		slices.ContainsFunc(d.Warnings, func(s string) bool { return strings.Contains(s, "created the topic") })
	if d.Notice != "" && d.Steady.Outage == "" && !created && !slices.ContainsFunc(d.Warnings, d.explainsNotice) {
		u.Pair(layout.Yellow, "note", d.Notice)
	}
	first, last := d.firstPage()
	verdicts(&u, first)
	t := &d.Totals
	if rows := d.FailureRows(); len(rows) > 0 {
		label := "failures"
		for _, f := range rows[:min(len(rows), briefFailures)] {
			u.Pair(layout.Yellow, label, layout.Cut(f.Class+": "+f.text(), layout.Columns-labelColumn))
			label = ""
		}
		if n := len(rows) - briefFailures; n > 0 {
			u.Pair("", "", fmt.Sprintf("and %d more", n))
		}
	}
	var codes []string
	bad := false
	for _, s := range t.Statuses {
		codes = append(codes, fmt.Sprintf("%d: %s", s.Code, units.FormatCount(s.Batches)))
		bad = bad || s.Code >= 300
	}
	if bad {
		u.Pair(layout.Yellow, "answers", strings.Join(codes, ", ")+" (batches by status)")
	}
	if t.Retries > 0 {
		u.Pair("", "retries", units.FormatCount(t.Retries)+", of "+units.FormatCount(t.Batches)+" batches")
	}
	if t.RebalanceS > 0 {
		u.Pair("", "rebalancing", seconds(t.RebalanceS)+" without an assignment")
	}
	d.briefLag(&u)
	d.briefMembers(&u)
	var reconnects uint64
	throttled := 0.0
	for i := range d.Clients {
		reconnects += d.Clients[i].Reconnects
		throttled += d.Clients[i].ThrottleSeconds
	}
	if reconnects > 0 || throttled > 0 {
		u.Pair("", "connections", units.Plural(reconnects, "reconnect")+", throttled for "+seconds(throttled))
	}
	if s := d.System; s != nil && s.Died {
		s.lastLines(&u, "its output")
	}
	if x := d.Indexed; x != nil {
		if !x.Still {
			u.Pair(layout.Yellow, "indexed", x.waited())
		}
		if text := d.refusedText(); text != "" {
			u.Pair(layout.Yellow, "indexed", text+", which are not indexed")
		}
		if x.Note != "" {
			u.Pair(layout.Yellow, "indexed", x.Note)
		}
	}
	if d.Trace != nil && (d.Trace.Error != "" || d.Trace.Dropped > 0) {
		u.Pair(layout.Yellow, "trace", d.Trace.text())
	}
	verdicts(&u, last)
	return u.String()
}

// briefLag is the consumer lag at the end.
func (d *Document) briefLag(p *layout.Page) {
	if len(d.Logs) == 0 {
		return
	}
	sum, most := int64(0), d.Logs[0]
	for _, l := range d.Logs {
		if l.Lag < 0 {
			p.Pair("", "lag", "unknown")
			return
		}
		if sum += l.Lag; l.Lag > most.Lag {
			most = l
		}
	}
	if sum > 0 {
		p.Pair("", "lag", fmt.Sprintf("%s in %s at the end, most in %s (%s)", units.Plural(uint64(sum), "event"),
			units.Plural(len(d.Logs), "log"), layout.CutMiddle(most.Log, 30), units.FormatCount(uint64(most.Lag))))
	}
}

// labelColumn is the width of the column of labels.
const labelColumn = 16
