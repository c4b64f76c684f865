package export

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/report"
)

// numbers writes the totals: counts and times.
func (p *page) numbers() {
	if !p.runs() {
		return
	}
	p.Open("section", "aria-label", "Numbers", "class", "totals")
	p.Element("h2", "Numbers of the measurement")
	p.Open("div", "class", "pair")
	p.counts("events", func(d *report.Document) []report.Row { return slices.Concat(d.Counts(), d.Figures()) })
	p.times()
	p.counts("read back", (*report.Document).LedgerRows)
	p.Close()
	for _, d := range p.ds {
		if rows := d.PartRows(); rows != nil {
			p.tableOf("numeric", rows[0], rows[1:])
		}
	}
	p.Close()
	p.Line()
}

// counts writes a row per number and a column per report; for a single report also its
// remarks. Numbers that are 0 everywhere are left out.
func (p *page) counts(title string, of func(*report.Document) []report.Row) {
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
	var rows [][]string
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
		rows = append(rows, cells)
	}
	head := append([]string{title}, p.ids()...)
	if !p.several() {
		head = []string{title, "", "", "meaning"}
	}
	class := "numeric"
	if !p.several() {
		class += " explained"
	}
	if len(rows) > 0 {
		p.tableOf(class, head, rows)
	}
}

// times writes a row per percentile, with a column per time for one report, and a column per
// report for several.
func (p *page) times() {
	var cols []report.Time
	if p.several() {
		for i, d := range p.ds {
			if c := d.MainTime(); c.Sum != nil {
				c.Title = p.ids()[i] + " " + c.Title
				cols = append(cols, c)
			}
		}
	} else {
		cols = p.ds[0].Measured()
	}
	if len(cols) == 0 {
		return
	}
	head := []string{"times"}
	var meaning []string
	for _, c := range cols {
		head, meaning = append(head, c.Title), append(meaning, c.Title+": "+c.Meaning)
	}
	p.Open("div")
	p.table(head, report.TimeRows(cols))
	if !p.several() {
		p.Element("p", strings.Join(meaning, "; ")+".", "class", "meaning")
	}
	p.Close()
}

// rest writes everything else: messages of failures, stalls and freezes, the settings,
// attached files, and the whole report as text.
func (p *page) rest() {
	p.Open("section", "aria-label", "Everything else")
	p.Element("h2", "Everything else")
	for i, d := range p.ds {
		of := ""
		if p.several() {
			of = " of " + p.names[i]
		}
		p.failures(d, of)
		p.faults(d, of)
		p.stalls(d, of)
		p.freezes(d, of)
		p.settings(d, of)
		if !p.several() {
			p.machines(d)
		}
		for _, a := range d.Attachments {
			p.fold("File "+a.Name+of, func() { p.Element("pre", a.Text, "tabindex", "0") })
		}
		p.fold("The report"+of+" as text", func() {
			var b bytes.Buffer
			if err := d.Text(&b, layout.Style{}); err != nil {
				return // a buffer returns no errors
			}
			p.Element("pre", b.String(), "tabindex", "0")
		})
	}
	if p.several() {
		p.machines(p.ds...)
	}
	p.Close()
	p.Line()
}

// machines writes a table for each kind of machine.
func (p *page) machines(ds ...*report.Document) {
	for _, m := range report.MachinesOf(ds...) {
		p.fold(m.Title, func() {
			var rows [][]string
			for _, r := range m.Rows {
				rows = append(rows, []string{r.Name, r.Text})
			}
			p.prose([]string{"", ""}, rows)
		})
	}
}

// trials writes the trials of searches.
func (p *page) trials() {
	for i, d := range p.ds {
		if d.Search == nil {
			continue
		}
		p.Open("section", "aria-label", "Trials")
		title := "Trials"
		if p.several() {
			title += " of " + p.names[i]
		}
		p.Element("h2", title)
		p.Element("p", "Each is a run with a report: carronade report list label.find="+d.Labels["find"])
		rows := d.Search.Rows()
		p.tableOf("prose trials", rows[0], rows[1:])
		p.Close()
		p.Line()
	}
}

// steps writes the steps of scenarios.
func (p *page) steps() {
	for i, d := range p.ds {
		if d.Scenario == nil {
			continue
		}
		p.Open("section", "aria-label", "Steps")
		title := "Steps"
		if p.several() {
			title += " of " + p.names[i]
		}
		p.Element("h2", title)
		p.Element("p", "Each that measured has a report: carronade report list label."+report.ScenarioLabel+"="+d.ID)
		rows := d.Scenario.Rows()
		p.tableOf("prose trials", rows[0], rows[1:])
		p.Close()
		p.Line()
	}
}

// fold writes a section that is closed at first.
func (p *page) fold(title string, content func()) {
	p.Open("details")
	p.Element("summary", title)
	content()
	p.Close()
	p.Line()
}

func (p *page) failures(d *report.Document, of string) {
	all := d.FailureRows()
	if len(all) == 0 {
		return
	}
	p.fold(fmt.Sprintf("Failures%s (%d)", of, len(all)), func() {
		var rows [][]string
		for _, f := range all {
			rows = append(rows, []string{f.Class, f.Events, f.Batches, f.Text})
		}
		p.prose([]string{"class", "events", "batches", "messages of the system or the connection"}, rows)
	})
}

// faults writes the scores of faults.
func (p *page) faults(d *report.Document, of string) {
	rows := d.FaultTable()
	if rows == nil {
		return
	}
	p.fold(fmt.Sprintf("Faults%s (%d)", of, len(d.Faults.Scores)), func() {
		p.table(rows[0], rows[1:])
		for _, text := range d.FaultTexts() {
			p.Element("p", text)
		}
	})
}

// stalls writes when the system answered nothing.
func (p *page) stalls(d *report.Document, of string) {
	var rows [][]string
	for _, s := range d.Stall.Each() {
		rows = append(rows, []string{pageSeconds(s.AtS), pageSeconds(s.LengthS)})
	}
	if len(rows) > 0 {
		p.fold(fmt.Sprintf("Stalls of the system%s (%d)", of, max(d.Stall.Count, uint64(len(rows)))), func() {
			p.table([]string{"at", "length"}, rows)
		})
	}
}

// freezes writes when the generator did not run, the longest first.
func (p *page) freezes(d *report.Document, of string) {
	f := &d.Freezes
	if len(f.Longest) == 0 {
		return
	}
	title := fmt.Sprintf("Freezes of the generator%s (%d)", of, f.Count)
	if n := uint64(len(f.Longest)); n < f.Count {
		title = fmt.Sprintf("Freezes of the generator%s (the %d longest of %d)", of, n, f.Count)
	}
	p.fold(title, func() {
		var rows [][]string
		for _, l := range f.Longest {
			rows = append(rows, []string{pageSeconds(l.AtS), pageSeconds(l.LengthS), l.Who, l.Cause})
		}
		p.prose([]string{"at", "length", "cause", "why"}, rows)
	})
}

func (p *page) settings(d *report.Document, of string) {
	if len(d.Settings) == 0 {
		return
	}
	p.fold("Settings"+of, func() {
		var rows [][]string
		for _, s := range d.Settings {
			by := "set"
			if s.Default {
				by = "by default"
			}
			rows = append(rows, []string{s.Name, s.Value, by})
		}
		p.prose([]string{"setting", "value", ""}, rows)
	})
}
