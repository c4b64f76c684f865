package export

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/report"
)

// totals are the totals of the measurement: counts, and times.
func (p *builder) totals() [][]*pageTable {
	if !p.runs() {
		return nil
	}
	return [][]*pageTable{append(
		p.counts("events", func(d *report.Document) []report.Row { return slices.Concat(d.Counts(), d.Figures()) }),
		p.counts("read back", (*report.Document).LedgerRows)...,
	), p.times()}
}

// parts are the numbers of the parts of each report.
func (p *builder) parts() (all []*pageTable) {
	for _, d := range p.ds {
		if rows := d.PartRows(); rows != nil && p.runs() {
			all = append(all, numericTable(rows[0], rows[1:]))
		}
		if rows := d.GroupRows(); rows != nil && p.runs() {
			all = append(all, numericTable(rows[0], rows[1:]))
		}
	}
	return all
}

// counts has a row per number and a column per report; for a single report also its
// remarks. Numbers that are 0 everywhere are left out.
func (p *builder) counts(title string, of func(*report.Document) []report.Row) []*pageTable {
	var order []report.Row
	found := make([]map[string]report.Row, len(p.ds))
	for i, d := range p.ds {
		found[i] = map[string]report.Row{}
		for _, r := range of(d) {
			found[i][r.Name] = r
			if (r.Always || r.Value != 0) && !slices.ContainsFunc(order, func(o report.Row) bool { return o.Name == r.Name }) {
				order = append(order, r)
			}
		}
	}
	t := numericTable(append([]string{title}, p.ids()...), nil)
	if !p.several() {
		t.Class, t.Head = "numeric explained", []string{title, "", "", "meaning"}
	}
	for _, r := range order {
		cells := []string{r.Label}
		for i := range p.ds {
			text := ""
			if x, ok := found[i][r.Name]; ok {
				text = x.Text()
			}
			cells = append(cells, text)
		}
		if !p.several() {
			cells = append(cells, r.Remark, r.Meaning)
		}
		t.Rows = append(t.Rows, cells)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []*pageTable{t}
}

// times has a row per percentile, with a column per time for one report, and a column per
// report for several. The times of the system and those of the generator have a table each, which fits a phone.
func (p *builder) times() []*pageTable {
	var cols []report.Time
	if p.several() {
		for i, d := range p.ds {
			if c := d.MainTime(); c.Sum != nil {
				c.Title = p.ids()[i] + " " + c.Title
				cols = append(cols, c)
			}
		}
		return p.timeTable(cols)
	}
	rest := p.ds[0].Measured()
	for len(rest) > 0 && rest[0].Main {
		cols, rest = append(cols, rest[0]), rest[1:]
	}
	return append(p.timeTable(cols), p.timeTable(rest)...)
}

func (p *builder) timeTable(cols []report.Time) []*pageTable {
	if len(cols) == 0 {
		return nil
	}
	t := numericTable([]string{"times"}, report.TimeRows(cols))
	var meaning []string
	for _, c := range cols {
		t.Head, meaning = append(t.Head, c.Title), append(meaning, c.Title+": "+c.Meaning)
	}
	if !p.several() {
		t.Meaning = strings.Join(meaning, "; ") + "."
		if slices.ContainsFunc(cols, func(c report.Time) bool { return len(c.AtMost) > 0 }) {
			t.Meaning += " <= is an upper bound: this machine may have added to it."
		}
	}
	return []*pageTable{t}
}

// rest adds everything else: messages of failures, stalls and freezes, the settings,
// attached files, and the whole report as text.
func (p *builder) rest() {
	for i, d := range p.ds {
		of := p.of(i)
		p.failures(d, of)
		p.backlog(d, of)
		p.faults(d, of)
		p.stalls(d, of)
		p.freezes(d, of)
		p.settings(d, of)
		if !p.several() {
			p.machines(d)
		}
		for _, a := range d.Attachments {
			p.fold(pageFold{Title: "File " + a.Name + of, Text: a.Text})
		}
		var b bytes.Buffer
		_ = d.Text(&b, layout.Style{}) // a buffer returns no errors
		p.fold(pageFold{Title: "The report" + of + " as text", Text: b.String()})
	}
	if p.several() {
		p.machines(p.ds...)
	}
}

func (p *builder) fold(f pageFold) { p.folds = append(p.folds, f) }

// machines adds a table for each kind of machine.
func (p *builder) machines(ds ...*report.Document) {
	for _, m := range report.MachinesOf(ds...) {
		var rows [][]string
		for _, r := range m.Rows {
			rows = append(rows, []string{r.Name, r.Text})
		}
		p.fold(pageFold{Title: m.Title, Table: proseTable([]string{"", ""}, rows)})
	}
}

// trials are the trials of searches.
func (p *builder) trials() (all []pageSection) {
	for i, d := range p.ds {
		if d.Search != nil {
			all = append(all, p.section(i, "Trials", "Each is a run with a report: carronade report list label.find="+d.Labels["find"], d.Search.Rows()))
		}
	}
	return all
}

// steps are the steps of scenarios.
func (p *builder) steps() (all []pageSection) {
	for i, d := range p.ds {
		if d.Scenario != nil {
			all = append(all, p.section(i, "Steps", "Each that measured has a report: carronade report list label."+report.ScenarioLabel+"="+d.ID, d.Scenario.Rows()))
		}
	}
	return all
}

func (p *builder) section(i int, label, meaning string, rows [][]string) pageSection {
	return pageSection{label, label + p.of(i), &pageTable{"prose cards trials", rows[0], rows[1:], meaning}}
}

func (p *builder) failures(d *report.Document, of string) {
	var rows [][]string
	for _, f := range d.FailureRows() {
		rows = append(rows, []string{f.Class, f.Events, f.Batches, f.Text})
	}
	if len(rows) > 0 {
		head := []string{"class", "events", "batches", "messages of the system or the connection"}
		p.fold(pageFold{Title: fmt.Sprintf("Failures%s (%d)", of, len(rows)), Table: proseTable(head, rows)})
	}
}

// faults adds the scores of faults.
func (p *builder) faults(d *report.Document, of string) {
	if rows := d.FaultTable(); rows != nil {
		p.fold(pageFold{Title: fmt.Sprintf("Faults%s (%d)", of, len(d.Faults.Scores)), Table: numericTable(rows[0], rows[1:]), Sentences: d.FaultTexts()})
	}
}

// backlog adds what waited for readers, and how producers did then.
func (p *builder) backlog(d *report.Document, of string) {
	for i, rows := range [][][]string{d.Backlog.StageRows(), d.Backlog.GroupRows()} {
		if rows != nil {
			f := pageFold{Title: "Backlog" + of, Table: numericTable(rows[0], rows[1:]), Sentences: d.BacklogText()}
			if i > 0 {
				f.Title, f.Sentences = "Backlog of each group"+of, nil
			}
			p.fold(f)
		}
	}
}

// stalls adds when the system answered nothing.
func (p *builder) stalls(d *report.Document, of string) {
	var rows [][]string
	for _, s := range d.Stall.Each() {
		rows = append(rows, []string{pageSeconds(s.AtS), pageSeconds(s.LengthS)})
	}
	if len(rows) > 0 {
		title := fmt.Sprintf("Stalls of the system%s (%d)", of, max(d.Stall.Count, uint64(len(rows))))
		p.fold(pageFold{Title: title, Table: numericTable([]string{"at", "length"}, rows)})
	}
}

// freezes adds when the generator did not run, the longest first.
func (p *builder) freezes(d *report.Document, of string) {
	f := &d.Freezes
	if len(f.Longest) == 0 {
		return
	}
	title := fmt.Sprintf("Freezes of the generator%s (%d)", of, f.Count)
	if n := uint64(len(f.Longest)); n < f.Count {
		title = fmt.Sprintf("Freezes of the generator%s (the %d longest of %d)", of, n, f.Count)
	}
	var rows [][]string
	for _, l := range f.Longest {
		rows = append(rows, []string{pageSeconds(l.AtS), pageSeconds(l.LengthS), l.Who, l.Cause})
	}
	p.fold(pageFold{Title: title, Table: proseTable([]string{"at", "length", "cause", "why"}, rows)})
}

func (p *builder) settings(d *report.Document, of string) {
	var rows [][]string
	for _, s := range d.Settings {
		by := "set"
		if s.Default {
			by = "by default"
		}
		rows = append(rows, []string{s.Name, s.Value, by})
	}
	if len(rows) > 0 {
		p.fold(pageFold{Title: "Settings" + of, Table: proseTable([]string{"setting", "value", ""}, rows)})
	}
}
