package export

import (
	"slices"
	"strings"

	"carronade/internal/page"
	"carronade/internal/report"
	"carronade/internal/report/picture"
	"carronade/units"
)

// A pageVerdict has all verdicts on a report.
type pageVerdict struct {
	Name, Headline string // the name of one of several
	Marks          []report.Note
}

// about is what was run, when, and the report: one line below the heading.
func (p *builder) about() []string {
	if p.several() {
		return nil
	}
	d := p.ds[0]
	out := []string{d.Load(mostAbout), d.When()}
	if d.ID != "" {
		out = append(out, "report "+d.ID)
	}
	return slices.DeleteFunc(append(out, d.Note), func(s string) bool { return s == "" })
}

// mostAbout is the most characters of a workload below the heading.
const mostAbout = 90

// bands are the bands of the reports. Those of several have no notes.
func (p *builder) bands() (all []page.Band) {
	for i, d := range p.ds {
		b := page.Band{Band: d.Band()}
		if p.several() {
			b.Tone, b.Name, b.Of, b.Notes, b.More = picture.ToneOf(i), p.names[i], d.Op+" "+d.Target, nil, 0
		}
		all = append(all, b)
	}
	return all
}

func (p *builder) verdicts() (all []pageVerdict) {
	for i, d := range p.ds {
		v := pageVerdict{Name: p.names[i], Headline: d.Headline()}
		for _, x := range d.Verdicts() {
			v.Marks = append(v.Marks, report.Note{Mark: x.Mark.Name(), Label: strings.ToLower(x.Label), Text: strings.Join(x.Sentences(), "; ")})
		}
		all = append(all, v)
	}
	return all
}

// conditions are the conditions of a run.
func conditions(d *report.Document) []report.Condition {
	all := slices.Concat(d.Conditions(), []report.Condition{{Name: "system", Text: systemText(d)}}, d.Origin())
	return slices.DeleteFunc(all, func(c report.Condition) bool {
		return c.Text == "" || c.Name == "by default" // a table below has all settings
	})
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

// differences has a row for each condition in which the reports differ, and one for when each
// ran.
func (p *builder) differences() *pageTable {
	t := proseTable(append([]string{""}, p.ids()...), nil)
	row := func(name string, of func(d *report.Document) string) {
		cells, first, differ := []string{name}, of(p.ds[0]), false
		for _, d := range p.ds {
			cells = append(cells, of(d))
			differ = differ || of(d) != first
		}
		if differ {
			t.Rows = append(t.Rows, cells)
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
	return t
}

func pageSeconds(s float64) string { return units.FormatDuration(units.Seconds(s)) }
