package export

import (
	"fmt"
	"io"
	"strings"
	"time"

	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// writeMarkdown writes reports for a page or an issue: the verdict with its
// conditions, the counts, the times and what speaks against them. GitHub's
// tables. The series is left to other forms.
func writeMarkdown(w io.Writer, rs Reports, _ Options) error {
	return rs.each(func(i int, d *report.Document) error {
		m := &markdown{}
		if i > 0 {
			m.line("")
		}
		m.report(d)
		_, err := io.WriteString(w, m.String())
		return err
	})
}

// A markdown is a page.
type markdown struct{ strings.Builder }

func (m *markdown) line(s string) {
	m.WriteString(s)
	m.WriteByte('\n')
}

// The alignment of the columns behind the first: numbers stand to the right.
const (
	words   = "---|"
	numbers = "---:|"
)

// table writes rows below their heading.
func (m *markdown) table(align string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	m.line("")
	m.line("| " + strings.Join(head, " | ") + " |")
	m.line("|---|" + strings.Repeat(align, len(head)-1))
	for _, r := range rows {
		m.line("| " + strings.Join(r, " | ") + " |")
	}
}

func (m *markdown) section(name string) {
	m.line("")
	m.line("### " + name)
}

func (m *markdown) report(d *report.Document) {
	m.line("## " + escape(d.Op+" "+d.Target))
	m.line("")
	m.line("**" + escape(d.Verdict()) + "**")
	m.line("")
	for _, l := range standing(d) {
		m.line("- " + escape(l))
	}
	m.workload(d)
	m.counts(d)
	m.steps(d)
	m.times(d)
	m.failures(d)
	m.line("")
	m.line("_" + escape(strings.Join(nonEmpty("report "+d.ID, "carronade "+d.Version, d.HostText), ", ")) + "_")
}

// standing is whether to believe it.
func standing(d *report.Document) []string {
	var out []string
	if c, dead := d.Dead(); dead {
		out = append(out, "BROKEN: "+c.Name+": "+c.Text)
	}
	if d.Steady.Outage != "" {
		out = append(out, d.Steady.Text)
	}
	if d.Partial {
		out = append(out, "partial: the run was cut short ("+string(d.Stopped)+")")
	}
	if text := d.EndedByHand(); text != "" {
		out = append(out, "ended "+text)
	}
	word := string(d.TrustLevel())
	if !d.Trust.OK {
		word = strings.ToUpper(word)
	}
	out = append(out, word+": "+d.TrustText())
	if text := d.Freezes.Text(); text != "" {
		out = append(out, "froze: "+text)
	}
	out = append(out, d.Trust.Notes...)
	out = append(out, nonEmpty(d.GeneratesText())...)
	if d.Steady.Text != "" && d.Steady.Outage == "" {
		out = append(out, d.Steady.Text)
	}
	for _, c := range d.Limits() {
		word := "holds: "
		switch {
		case c.CannotTell:
			word = "" // the text says it
		case !c.OK:
			word = "BROKEN: "
		}
		out = append(out, word+c.Name+": "+c.Text)
	}
	for _, p := range d.Problems {
		out = append(out, "problem: "+p)
	}
	for _, p := range d.Warnings {
		out = append(out, "warning: "+p)
	}
	return out
}

func (m *markdown) workload(d *report.Document) {
	m.section("Workload")
	rows := [][]string{{"load", escape(string(d.Mode))}}
	for _, s := range d.Settings {
		if !s.Default {
			rows = append(rows, []string{escape(s.Name), code(s.Value)})
		}
	}
	for _, k := range sorted(d.Labels) {
		rows = append(rows, []string{"label " + escape(k), code(d.Labels[k])})
	}
	rows = append(rows, []string{"started", d.StartedAt.UTC().Format(time.DateTime) + " UTC"})
	if d.System != nil {
		for _, k := range sorted(d.System.Facts) {
			rows = append(rows, []string{"system " + escape(k), code(fmt.Sprint(d.System.Facts[k]))})
		}
	}
	if d.Note != "" {
		rows = append(rows, []string{"note", escape(d.Note)})
	}
	m.table(words, []string{"setting", "value"}, rows)
}

func (m *markdown) counts(d *report.Document) {
	m.section("Events")
	t := &d.Totals
	rows := [][]string{}
	add := func(name string, n uint64, always bool) {
		if n > 0 || always {
			rows = append(rows, []string{name, units.FormatCount(n)})
		}
	}
	firing := d.Mode != load.Consuming
	if firing {
		add("offered", t.Offered, true)
		add("sent", t.Sent, true)
		add("acked", t.Acked, true)
		add("failed", t.Failed, true)
		add("unknown", t.Unknown, true)
		add("dropped", t.Dropped, false)
		add("unsent", t.Unsent, false)
	}
	add("consumed", t.Consumed, !firing)
	add("missing", t.Missing, false)
	add("shots", t.Shots, false)
	add("retries", t.Retries, false)
	rows = append(rows,
		[]string{"throughput", units.FormatRate(t.EventsPerS) + " " + t.RateOf},
		[]string{"bytes", units.FormatSize(int64(t.BytesPerS)) + "/s (" + units.FormatSize(int64(t.Bytes)) + ")"})
	if l := d.Ledger; l != nil {
		add("lost", l.Lost, true)
		add("unread", l.Unread, true)
		add("duplicated", l.Duplicated, true)
		add("reordered", l.Reordered, true)
		add("corrupted", l.Corrupted, true)
		add("recovered", l.Recovered, false)
		add("compacted", l.Compacted, false)
		add("aborted", l.Aborted, false)
		add("phantom", l.Phantom, l.Committed+l.Aborted > 0)
	}
	m.table(numbers, []string{"events", "hold"}, rows)
}

func (m *markdown) steps(d *report.Document) {
	if len(d.Steps) == 0 {
		return
	}
	m.section("Steps")
	var rows [][]string
	for i := range d.Steps {
		s := &d.Steps[i]
		row := []string{escape(s.Name), units.FormatRate(s.Rate), units.FormatRate(s.Totals.EventsPerS)}
		for _, p := range []float64{50, 99} {
			v, ok := s.Response.At(p)
			row = append(row, value(v, ok))
		}
		rows = append(rows, row)
	}
	m.table(numbers, []string{"step", "asked", d.Totals.RateOf, "response p50", "response p99"}, rows)
}

func (m *markdown) times(d *report.Document) {
	head := []string{"time"}
	var of []*measure.Summary
	for _, t := range d.Measured() {
		head, of = append(head, t.Title), append(of, t.Sum)
	}
	if len(of) == 0 {
		return
	}
	m.section("Times")
	var rows [][]string
	row := func(name string, cell func(s *measure.Summary) string) {
		r := []string{name}
		for _, s := range of {
			r = append(r, cell(s))
		}
		rows = append(rows, r)
	}
	for _, p := range of[0].Percentiles {
		row(measure.PercentileName(p.P), func(s *measure.Summary) string { return value(s.At(p.P)) })
	}
	for _, e := range []struct {
		name string
		us   func(*measure.Summary) float64
	}{
		{"max", func(s *measure.Summary) float64 { return s.Max }}, {"mean", func(s *measure.Summary) float64 { return s.Mean }},
	} {
		row(e.name, func(s *measure.Summary) string {
			if s.Count == 0 {
				return ""
			}
			return units.FormatDuration(units.Seconds(e.us(s) / 1e6))
		})
	}
	m.table(numbers, head, rows)
}

func (m *markdown) failures(d *report.Document) {
	if len(d.Failures) == 0 {
		return
	}
	m.section("Failures")
	var rows [][]string
	for _, f := range d.Failures {
		rows = append(rows, []string{escape(f.Class + ": " + f.Text), units.FormatCount(f.Events), units.FormatCount(f.Shots)})
	}
	m.table(numbers, []string{"failure", "events", "shots"}, rows)
}

// value is a percentile, "" where there is none.
func value(v measure.Value, ok bool) string {
	if !ok {
		return ""
	}
	return report.Percentile(v)
}

// specials are what has a meaning in Markdown within a line of a table.
var specials = strings.NewReplacer(
	"\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`", "<", "&lt;", "&", "&amp;", "[", "\\[", "]", "\\]",
	"\n", " ", "\r", " ", "\t", " ",
)

// escape makes a text stand for itself. Others' words are among it.
func escape(s string) string { return specials.Replace(clean(s)) }

// code is a text as it would be typed.
func code(s string) string {
	if s == "" {
		return ""
	}
	s = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ", "|", "\\|").Replace(clean(s))
	if !strings.Contains(s, "`") {
		return "`" + s + "`"
	}
	fence := "``" // longer than any run of them within: others' words stay inside
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + " " + s + " " + fence
}

// clean takes out what moves a cursor.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

func nonEmpty(all ...string) []string {
	var out []string
	for _, s := range all {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
