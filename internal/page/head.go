package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"carronade/internal/picture"
	"carronade/internal/report"
	"carronade/measure"
	"carronade/units"
)

// head is the answer: what was reached, whether to believe it, and under which
// conditions.
func (p *page) head() {
	p.Open("header")
	if p.several() {
		p.Element("h1", fmt.Sprintf("%d reports compared", len(p.ds)))
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
		p.Element("p", d.Verdict(), "class", "answer")
		p.marks(d)
		p.Close()
	}
	p.conditions()
	p.Close()
	p.Line()
}

// marks say what speaks for and against the numbers.
func (p *page) marks(d *report.Document) {
	p.Open("ul", "class", "marks")
	mark := func(class, sign, name, text string) {
		p.Open("li", "class", class)
		p.Element("b", sign+" "+name)
		if text != "" {
			p.Text(" " + text)
		}
		p.Close()
	}
	const good, bad, mind = "good", "bad", "mind"
	if c, dead := d.Dead(); dead {
		mark(bad, "✗", c.Name, c.Text)
	}
	if d.Steady.Outage != "" {
		mark(mind, "!", "not steady", d.Steady.Text)
	}
	if d.Partial {
		mark(mind, "!", "partial", "the run was cut short: "+string(d.Stopped))
	}
	if text := d.EndedByHand(); text != "" {
		mark("", "·", "ended", text)
	}
	switch d.TrustLevel() {
	case measure.Trusted:
		mark(good, "✓", "trusted", d.TrustText())
	case measure.Noisy:
		mark(mind, "!", "noisy", d.TrustText())
	default:
		mark(bad, "✗", "not trusted", d.TrustText())
	}
	if text := d.Freezes.Text(); text != "" {
		mark("", "·", "froze", text)
	}
	for _, n := range d.Trust.Notes {
		mark("", "·", "note", n)
	}
	if text := d.GeneratesText(); text != "" {
		mark("", "·", "generates", text)
	}
	switch {
	case d.Steady.Text == "" || d.Steady.Outage != "":
	case d.Steady.Known && d.Steady.OK:
		mark(good, "✓", "steady", d.Steady.Text)
	case d.Steady.Known:
		mark(mind, "!", "not steady", d.Steady.Text)
	default:
		mark("", "?", "steady", d.Steady.Text)
	}
	for _, c := range d.Limits() {
		switch {
		case c.OK:
			mark(good, "✓", c.Name, c.Text)
		case c.CannotTell:
			mark(mind, "?", c.Name, c.Text)
		default:
			mark(bad, "✗", c.Name, c.Text)
		}
	}
	for _, s := range d.Problems {
		mark(bad, "✗", "problem", s)
	}
	for _, s := range d.Warnings {
		mark(mind, "!", "warning", s)
	}
	p.Close()
}

// conditions are what it takes to judge the number.
func (p *page) conditions() {
	p.Element("h2", "Conditions")
	if p.several() {
		p.compared()
		return
	}
	d := p.ds[0]
	p.Open("dl", "class", "conditions")
	say := func(name, text string) {
		if strings.TrimSpace(text) == "" {
			return
		}
		p.Element("dt", name)
		p.Element("dd", text)
	}
	for _, c := range conditionsOf(d) {
		say(c[0], c[1])
	}
	p.Close()
}

func conditionsOf(d *report.Document) [][2]string {
	var set, labels []string
	for _, s := range d.Settings {
		if !s.Default && s.Value != "" {
			set = append(set, s.Name+" "+s.Value)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(d.Labels)) {
		labels = append(labels, k+"="+d.Labels[k])
	}
	var spans []string
	for _, ph := range d.Phases {
		if ph.EndS > ph.StartS {
			spans = append(spans, ph.Name+" "+seconds(ph.EndS-ph.StartS))
		}
	}
	repetition := ""
	if d.Repetitions > 1 {
		repetition = fmt.Sprintf("%d of %d", d.Repetition, d.Repetitions)
	}
	return [][2]string{
		{"note", d.Note},
		{"load", string(d.Mode)},
		{"set", strings.Join(set, ", ")},
		{"labels", strings.Join(labels, ", ")},
		{"when", d.StartedAt.UTC().Format(time.DateTime) + " UTC: " + strings.Join(spans, ", ")},
		{"repetition", repetition},
		{"system", systemText(d)},
		{"machine", d.HostText},
		{"program", "carronade " + d.Version},
		{"report", strings.TrimSpace(d.ID + " " + hashText(d))},
	}
}

func hashText(d *report.Document) string {
	if d.Hash == "" {
		return ""
	}
	return "(" + d.Hash + ")"
}

// systemText is what of the system under test tells it from another.
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

// compared is a row a condition, for those in which the reports differ, and one
// for when each ran.
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
		row(name, func(d *report.Document) string { return picture.Said(d, name) })
	}
	row("target", func(d *report.Document) string { return d.Target })
	row("note", func(d *report.Document) string { return d.Note })
	row("when", func(d *report.Document) string { return d.StartedAt.UTC().Format(time.DateTime) + " UTC" })
	row("system", systemText)
	row("machine", func(d *report.Document) string { return d.HostText })
	row("program", func(d *report.Document) string { return d.Version })
	if len(rows) == 0 {
		p.Element("p", "Nothing that was set differs.")
		return
	}
	p.Element("p", "What differs between them; all else that was set is the same.")
	p.prose(head, rows)
}

func seconds(s float64) string { return units.FormatDuration(units.Seconds(s)) }
