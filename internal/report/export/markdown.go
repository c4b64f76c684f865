package export

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/report"
)

// writeMarkdown writes reports for a page or an issue: the verdicts with the
// conditions, the counts, the times and the failures, in GitHub's tables. The
// series is left to other formats.
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

// A markdown is a page being written.
type markdown struct{ strings.Builder }

func (m *markdown) line(s string) {
	m.WriteString(s)
	m.WriteByte('\n')
}

// table writes rows below their heading. Columns after the first are aligned left if they are texts, right if
// they are numbers.
func (m *markdown) table(texts bool, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	t := layout.Table{TightRule: true}
	for i := range head {
		if texts {
			t.Left = append(t.Left, i)
		}
	}
	t.Row(head...)
	for _, r := range rows {
		t.Row(r...)
	}
	m.line("")
	m.WriteString(t.Markdown())
}

func (m *markdown) section(name string) {
	m.line("")
	m.line("### " + name)
}

func (m *markdown) report(d *report.Document) {
	m.line("## " + heading(d))
	m.line("")
	m.line("**" + layout.Markdown(d.Headline()) + "**")
	m.line("")
	for _, v := range d.Verdicts() {
		for _, s := range v.Sentences() {
			m.line("- " + layout.Markdown(v.Label+": "+s))
		}
	}
	if d.Search != nil {
		m.search(d)
		m.workload(d)
		m.origin(d)
		return
	}
	if d.Scenario != nil {
		m.scenario(d)
		m.origin(d)
		return
	}
	m.workload(d)
	m.numbers("Events", []string{"events", "measurement", ""}, slices.Concat(d.Counts(), d.Figures()))
	m.numbers("Ledger", []string{"events", "whole run", ""}, d.LedgerRows())
	if parts := d.PartRows(); parts != nil {
		m.section(d.PartsTitle())
		m.table(false, parts[0], escaped(parts[1:]))
	}
	if groups := d.GroupRows(); groups != nil {
		m.section("Groups")
		m.table(false, groups[0], escaped(groups[1:]))
	}
	if steps := d.StepRows(); steps != nil {
		m.section("Steps")
		m.table(false, steps[0], escaped(steps[1:]))
	}
	m.times(d)
	m.faults(d)
	m.fleet(d)
	m.failures(d)
	m.origin(d)
}

// faults writes the scores of faults, and sentences on them.
func (m *markdown) faults(d *report.Document) {
	rows := d.FaultTable()
	if rows == nil {
		return
	}
	m.section("Faults")
	m.table(false, rows[0], escaped(rows[1:]))
	m.line("")
	for _, text := range escaped([][]string{d.FaultTexts()})[0] {
		m.line("- " + text)
	}
}

// fleet writes the table of the generators, if there are several.
func (m *markdown) fleet(d *report.Document) {
	head, rows, remarks := d.FleetTable()
	if head == nil {
		return
	}
	m.section("Generators")
	m.table(false, head, escaped(rows))
	for _, r := range remarks {
		m.line("")
		m.line(layout.Markdown(r))
	}
}

// origin writes the machines, the program and the report.
func (m *markdown) origin(d *report.Document) {
	for _, x := range d.Machines() {
		m.section(x.Title)
		var rows [][]string
		for _, r := range x.Rows {
			rows = append(rows, []string{layout.Markdown(r.Name), layout.Markdown(r.Text)})
		}
		m.table(true, []string{"machine", ""}, rows)
	}
	m.line("")
	var from []string
	for _, c := range d.Origin() {
		from = append(from, c.Name+" "+c.Text)
	}
	m.line("_" + layout.Markdown(strings.Join(from, "; ")) + "_")
}

func (m *markdown) workload(d *report.Document) {
	m.section("Workload")
	rows := [][]string{{"load", layout.Markdown(string(d.Mode))}}
	for _, s := range d.Settings {
		if !s.Default {
			rows = append(rows, []string{layout.Markdown(s.Name), layout.MarkdownCode(s.Value)})
		}
	}
	for _, c := range d.Conditions() {
		switch c.Name {
		case "load", "set", "by default": // the settings have a row each
		default:
			rows = append(rows, []string{layout.Markdown(c.Name), layout.MarkdownCode(c.Text)})
		}
	}
	if d.System != nil {
		for _, k := range sorted(d.System.Facts) {
			rows = append(rows, []string{"system " + layout.Markdown(k), layout.MarkdownCode(fmt.Sprint(d.System.Facts[k]))})
		}
	}
	m.table(true, []string{"setting", "value"}, rows)
}

// numbers writes the rows of the report that are not empty.
func (m *markdown) numbers(title string, head []string, of []report.Row) {
	var rows [][]string
	for i := range of {
		if r := &of[i]; r.Always || r.Value != 0 {
			rows = append(rows, []string{layout.Markdown(r.Label), r.Text(), layout.Markdown(r.Remark)})
		}
	}
	if len(rows) > 0 {
		m.section(title)
		m.table(false, head, rows)
	}
}

func (m *markdown) times(d *report.Document) {
	cols := d.Measured()
	if len(cols) == 0 {
		return
	}
	m.section("Times")
	head := []string{"time"}
	for _, c := range cols {
		head = append(head, c.Title)
	}
	m.table(false, head, escaped(report.TimeRows(cols)))
}

func (m *markdown) failures(d *report.Document) {
	var rows [][]string
	for _, f := range d.FailureRows() {
		rows = append(rows, []string{layout.Markdown(strings.TrimSuffix(f.Class+": "+f.Text, ": ")), f.Events, f.Batches})
	}
	if len(rows) > 0 {
		m.section("Failures")
		m.table(false, []string{"failure", "events", "batches"}, rows)
	}
}

// escaped are cells without the padding that the columns of a text page need.
func escaped(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for i, r := range rows {
		for _, c := range r {
			out[i] = append(out[i], layout.Markdown(strings.Join(strings.Fields(c), " ")))
		}
	}
	return out
}
