package judge

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"carronade/internal/digest"
	"carronade/internal/report"
	"carronade/units"
)

// Text writes the collation for people: of each group what its rows share, and
// a table. It is as wide as it has to be.
func (c *Collation) Text(w io.Writer, style report.Style) error {
	p := &page{style: style}
	for i := range c.Groups {
		if i > 0 {
			p.line("")
		}
		c.group(p, &c.Groups[i])
	}
	if len(c.Notes) > 0 {
		p.line("")
	}
	for _, n := range c.Notes {
		p.note(n)
	}
	leftOut(p, c.LeftOut)
	return p.to(w)
}

func (c *Collation) group(p *page, g *Group) {
	c.head(p, g)
	t := wide{left: 2}
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
	t.row(head, nil)
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
				text, dev = cell.text(), cell.deviation(p.style.ASCII)
			}
			if cell.Best {
				text += "*"
				colors[len(cells)] = green
			}
			several = several || dev != ""
			cells, spread = append(cells, text), append(spread, dev)
		}
		cells = append(cells, cut(l.Value, 60))
		colors[len(cells)-1] = bold
		if revisions {
			cells = append(cells, cut(l.Revision, 15))
		}
		if flags {
			cells = append(cells, flagWords(l.Flags))
		}
		t.row(cells, colors)
		if several {
			t.dim(spread)
		}
	}
	t.write(p)
}

// firsts are the variables that a group's head names first, and names even where
// they are the same in all groups.
var firsts = []string{"for", "count", "bytes", "events", "spans", "frames", "size", "rate", "shape", "callers", "branch", "revision", "system-mem"}

// head is what the rows of a group share: what anybody asks for, and what
// differs from other groups.
func (c *Collation) head(p *page, g *Group) {
	var items []string
	add := func(name string) {
		for _, e := range g.Equal {
			if e.Name == name && (name != "system-mem" || e.Value != "none" || slices.Contains(g.Differs, name)) {
				items = append(items, shownField(name)+" "+cut(e.Value, 60))
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
			items = append(items, f.Name+" "+cut(f.Value, 60))
		}
	}
	for _, l := range fold(items, report.Columns) {
		p.line(p.paint(bold, l))
	}
	if also := g.also(); len(also) > 0 {
		for _, l := range report.Wrap("differs with it: "+strings.Join(also, ", "), report.Columns) {
			p.line(p.paint(dim, l))
		}
	}
	older := 0
	for i := range g.Rows {
		older += g.Rows[i].Older
	}
	if older > 0 {
		p.line(p.paint(dim, fmt.Sprintf("of each row the newest revision; %s of others", reports(older))))
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
		case width(line)+2+width(it) <= n:
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
	return cut(strings.Join(parts, " "), 80)
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

// A wide table is one whose width is that of its cells: texts stand to the left,
// and numbers to the right.
type wide struct {
	left   int // so many columns stand to the left, whatever is in them
	rows   [][]string
	colors []map[int]string
}

func (t *wide) row(cells []string, colors map[int]string) {
	for i := range cells {
		cells[i] = report.Clean(cells[i])
	}
	t.rows, t.colors = append(t.rows, cells), append(t.colors, colors)
}

// dim adds a row that is less important.
func (t *wide) dim(cells []string) {
	colors := map[int]string{}
	for i := range cells {
		colors[i] = dim
	}
	t.row(cells, colors)
}

func (t *wide) write(p *page) {
	var widths []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(c))
		}
	}
	for k, r := range t.rows {
		var b strings.Builder
		for i, c := range r {
			if i > 0 {
				b.WriteString("  ")
			}
			left := i < t.left || !t.number(i)
			cell := pad(c, widths[i])
			if !left {
				cell = strings.Repeat(" ", widths[i]-width(c)) + c
			}
			code := t.colors[k][i]
			if k == 0 {
				code = dim
			}
			b.WriteString(p.paint(code, cell))
		}
		p.line(b.String())
	}
}

// number reports whether a column's cells begin with a digit or a sign.
func (t *wide) number(column int) bool {
	for _, r := range t.rows[1:] {
		if column < len(r) && r[column] != "" && !strings.ContainsRune("0123456789-+>\u00b1", []rune(r[column])[0]) {
			return false
		}
	}
	return true
}
