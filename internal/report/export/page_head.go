package export

import (
	"slices"
	"strings"

	"carronade/internal/report"
	"carronade/internal/report/picture"
	"carronade/units"
)

// A pageVerdict is the result of a report, with its verdicts.
type pageVerdict struct {
	Tone             picture.Tone // of several reports, and a name and what it is of
	Name, Of, Answer string
	Marks            []pageVerdictMark
}

type pageVerdictMark struct{ Class, Label, Text string }

// symbols are the symbol of a verdict and its class in the style sheet.
var symbols = map[report.Mark][2]string{
	report.Remark: {"·", ""}, report.Good: {"✓", "good"}, report.Open: {"?", ""}, report.Caution: {"!", "mind"}, report.Bad: {"✗", "bad"},
}

func (p *page) verdicts() (all []pageVerdict) {
	for i, d := range p.ds {
		v := pageVerdict{Tone: picture.ToneOf(i), Name: p.names[i], Of: d.Op + " " + d.Target, Answer: d.Headline()}
		for _, x := range d.Verdicts() {
			sign := symbols[x.Mark]
			v.Marks = append(v.Marks, pageVerdictMark{sign[1], sign[0] + " " + strings.ToLower(x.Label), strings.Join(x.Sentences(), "; ")})
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
func (p *page) differences() *pageTable {
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
