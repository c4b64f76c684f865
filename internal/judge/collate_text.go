package judge

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"carronade/internal/digest"
	"carronade/internal/layout"
	"carronade/units"
)

// Text writes the collation for people: of each group what its rows share, and
// a table. It is as wide as it has to be.
func (c *Collation) Text(w io.Writer, style layout.Style) error {
	p := &layout.Page{Style: style}
	for i := range c.Groups {
		if i > 0 {
			p.Line("")
		}
		c.group(p, &c.Groups[i])
	}
	if len(c.Notes) > 0 {
		p.Line("")
	}
	for _, n := range c.Notes {
		p.Note(n)
	}
	leftOut(p, c.LeftOut)
	return p.To(w)
}

func (c *Collation) group(p *layout.Page, g *Group) {
	c.head(p, g)
	t := layout.Table{Headings: 1, Left: []int{0, 1}, Words: true}
	dates := slices.ContainsFunc(g.Rows, func(l Line) bool { return l.RevisionDate != nil })
	flags := g.flagsDiffer()
	revisions := slices.ContainsFunc(g.Follows, func(d Differing) bool { return d.Name == "revision" })
	joined := slices.ContainsFunc(g.Rows, func(l Line) bool { return len(l.Reports) > 1 })
	cols := slices.DeleteFunc(slices.Clone(c.columns), func(col column) bool { return !g.some(col.field) })

	head := []string{"report id", "started"}
	if dates {
		head[1] = "revision date"
	}
	if joined {
		head = append(head, "runs")
	}
	for _, col := range cols {
		head = append(head, col.title)
	}
	head = append(head, shownField(c.Variable))
	if revisions {
		head = append(head, "revision")
	}
	if flags {
		head = append(head, "flags")
	}
	t.Row(head...)
	for i := range g.Rows {
		l := &g.Rows[i]
		id, at := l.Reports[0], l.At
		if l.Untrusted > 0 {
			id += "!"
		}
		if dates {
			at = time.Time{}
			if l.RevisionDate != nil {
				at = *l.RevisionDate
			}
		}
		cells, colors := []string{id, minute(at)}, map[int]string{}
		spread, several := []string{"", ""}, false
		if joined {
			cells = append(cells, fmt.Sprint(len(l.Reports)))
			spread = append(spread, "")
		}
		for _, col := range cols {
			cell, ok := l.Cells[col.field]
			text, dev := "-", ""
			if ok {
				text, dev = cell.text(), cell.deviation(p.Style.ASCII)
			}
			if cell.Best {
				text += "*"
				colors[len(cells)] = layout.Green
			}
			several = several || dev != ""
			cells, spread = append(cells, text), append(spread, dev)
		}
		cells = append(cells, layout.Cut(l.Value, 60))
		colors[len(cells)-1] = layout.Bold
		if revisions {
			cells = append(cells, layout.Cut(l.Revision, 15))
		}
		if flags {
			cells = append(cells, flagWords(l.Flags))
		}
		t.Row(cells...)
		for k, code := range colors {
			t.Paint(k, code)
		}
		if several {
			t.Row(spread...)
			for k := range spread {
				t.Paint(k, layout.Dim)
			}
		}
	}
	for _, line := range t.Lines(0, p.Style) { // as wide as it has to be
		p.Line(line)
	}
}

// firsts are the variables that a group's head names first, and names even where
// they are the same in all groups.
var firsts = []string{"for", "count", "bytes", "events", "spans", "frames", "size", "rate", "shape", "callers", "branch", "revision", "system-mem"}

// head is what the rows of a group share: what anybody asks for, and what
// differs from other groups.
func (c *Collation) head(p *layout.Page, g *Group) {
	var items []string
	add := func(name string) {
		for _, e := range g.Equal {
			if e.Name == name && (name != "system-mem" || e.Value != "none" || slices.Contains(g.Differs, name)) {
				items = append(items, shownField(name)+" "+layout.Cut(e.Value, 60))
			}
		}
	}
	for _, name := range firsts {
		add(name)
	}
	for _, name := range g.Differs {
		if !slices.Contains(firsts, name) {
			add(name)
		}
	}
	if !g.flagsDiffer() {
		for _, f := range g.Rows[0].Flags {
			items = append(items, f.Name+" "+layout.Cut(f.Value, 60))
		}
	}
	for _, l := range fold(items, layout.Columns) {
		p.Line(p.Paint(layout.Bold, l))
	}
	if also := g.also(); len(also) > 0 {
		for _, l := range layout.Wrap("differs with it: "+strings.Join(also, ", "), layout.Columns) {
			p.Line(p.Paint(layout.Dim, l))
		}
	}
	older := 0
	for i := range g.Rows {
		older += g.Rows[i].Older
	}
	if older > 0 {
		p.Line(p.Paint(layout.Dim, fmt.Sprintf("of each row the newest revision; %s of others", reports(older))))
	}
}

// also names what differs within a group and has no column.
func (g *Group) also() (out []string) {
	for _, f := range g.Follows {
		if f.Name != "revision" {
			out = append(out, shownField(f.Name))
		}
	}
	return out
}

// fold puts items into lines, two blanks apart.
func fold(items []string, n int) (lines []string) {
	line := ""
	for _, it := range items {
		switch {
		case line == "":
			line = it
		case layout.Width(line)+2+layout.Width(it) <= n:
			line += "  " + it
		default:
			lines, line = append(lines, line), it
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

func (g *Group) some(field string) bool {
	return slices.ContainsFunc(g.Rows, func(l Line) bool { _, ok := l.Cells[field]; return ok })
}

// flagsDiffer reports whether the rows of a group ran with different flags.
func (g *Group) flagsDiffer() bool {
	return slices.ContainsFunc(g.Rows, func(l Line) bool { return !slices.Equal(l.Flags, g.Rows[0].Flags) })
}

func flagWords(flags []Setting) string {
	var parts []string
	for _, f := range flags {
		parts = append(parts, f.Name+"="+f.Value)
	}
	return layout.Cut(strings.Join(parts, " "), 80)
}

// shownField is a field's name without what is only there to keep names apart.
func shownField(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, flagPrefix), labelPrefix)
}

func minute(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04")
}

// text is the median.
func (c *Cell) text() string {
	var text string
	switch c.kind {
	case digest.Number:
		text = fmt.Sprintf("%.3f", c.Median)
		if math.Abs(c.Median) >= 100 {
			text = fmt.Sprintf("%.0f", c.Median)
		}
	default:
		text = digest.Value{Kind: c.kind, Num: c.Median}.String()
	}
	if c.AtLeast {
		return ">=" + text
	}
	return text
}

// deviation is the spread, "" of a single value.
func (c *Cell) deviation(ascii bool) string {
	if c.Spread == nil || c.N < 2 {
		return ""
	}
	sign := "\u00b1"
	if ascii {
		sign = "+-"
	}
	return sign + units.FormatPercent(math.Round(*c.Spread*1000)/1000)
}
