package export

import (
	"fmt"
	"slices"
	"strings"

	"carronade/internal/picture"
	"carronade/internal/report"
	"carronade/units"
)

// head writes the result, the verdicts and the conditions.
func (p *page) head() {
	p.Open("header")
	if p.several() {
		p.Element("h1", fmt.Sprintf("%d reports compared", len(p.ds)))
	} else if !p.runs() {
		p.Element("h1", strings.TrimSuffix(p.title(), " - Carronade"))
	} else {
		p.Element("h1", p.ds[0].Op+" "+p.ds[0].Target)
	}
	for i, d := range p.ds {
		p.Open("section", "class", "verdict", "aria-label", "Verdict")
		if p.several() {
			p.Open("h2")
			p.Open("svg", "class", "sample", "viewBox", "0 0 28 12", "width", "28", "height", "12", "aria-hidden", "true")
			p.Empty("path", "class", fmt.Sprintf("f%d", picture.ToneOf(i)), "d", "M2 0h24v12h-24z")
			p.Close()
			p.Text(" " + p.names[i])
			p.Close()
			p.Element("p", d.Op+" "+d.Target)
		}
		p.Element("p", d.Headline(), "class", "answer")
		p.marks(d)
		p.Close()
	}
	p.conditions()
	p.Close()
	p.Line()
}

// signs are the symbol of a verdict and its class in the style sheet.
var symbols = map[report.Mark][2]string{
	report.Remark: {"·", ""}, report.Good: {"✓", "good"}, report.Open: {"?", ""}, report.Caution: {"!", "mind"}, report.Bad: {"✗", "bad"},
}

// marks writes the verdicts.
func (p *page) marks(d *report.Document) {
	p.Open("ul", "class", "marks")
	for _, v := range d.Verdicts() {
		sign := symbols[v.Mark]
		p.Open("li", "class", sign[1])
		p.Element("b", sign[0]+" "+strings.ToLower(v.Label))
		p.Text(" " + strings.Join(v.Sentences(), "; "))
		p.Close()
	}
	p.Close()
}

// conditions writes the conditions of the run.
func (p *page) conditions() {
	p.Element("h2", "Conditions")
	if p.several() {
		p.compared()
		return
	}
	d := p.ds[0]
	p.Open("dl", "class", "conditions")
	for _, c := range slices.Concat(d.Conditions(), []report.Condition{{Name: "system", Text: systemText(d)}}, d.Origin()) {
		if c.Text != "" && c.Name != "by default" { // a table below has all settings
			p.Element("dt", c.Name)
			p.Element("dd", c.Text)
		}
	}
	p.Close()
}

// systemText identifies the system under test.
func systemText(d *report.Document) string {
	if d.System == nil {
		return ""
	}
	var parts []string
	for _, name := range []string{"command", "image", "branch", "revision"} {
		if s, ok := d.System.Facts[name].(string); ok && s != "" {
			parts = append(parts, name+" "+s)
		}
	}
	if d.System.Died {
		parts = append(parts, "ended by itself: "+d.System.Exit)
	}
	return strings.Join(parts, ", ")
}

// compared writes a row for each condition in which the reports differ, and one for when each
// ran.
func (p *page) compared() {
	head := append([]string{""}, p.ids()...)
	var rows [][]string
	row := func(name string, of func(d *report.Document) string) {
		cells, first, differ := []string{name}, of(p.ds[0]), false
		for _, d := range p.ds {
			cells = append(cells, of(d))
			differ = differ || of(d) != first
		}
		if differ {
			rows = append(rows, cells)
		}
	}
	for _, name := range picture.Differences(p.ds...) {
		row(name, func(d *report.Document) string { return picture.SettingValue(d, name) })
	}
	row("target", func(d *report.Document) string { return d.Target })
	row("note", func(d *report.Document) string { return d.Note })
	row("when", (*report.Document).When)
	row("system", systemText)
	row("machine", func(d *report.Document) string { return d.HostText })
	row("program", func(d *report.Document) string { return d.Version })
	if len(rows) == 0 {
		p.Element("p", "All settings are the same.")
		return
	}
	p.Element("p", "What differs between them; all other settings are the same.")
	p.prose(head, rows)
}

func pageSeconds(s float64) string { return units.FormatDuration(units.Seconds(s)) }
