package judge

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/units"
)

// Text writes the collation for people: for each group what its rows share, and
// a table. A table wider than columns (0: no limit) is split into several below
// each other, which all begin with VAR.
func (c *Collation) Text(w io.Writer, style layout.Style, columns int) error {
	p := &layout.Page{Style: style, MaxColumns: columns}
	p.Answer(layout.Bold, "DONE", c.answer())
	leftOut(p, c.LeftOut)
	for i := range c.Groups {
		p.Line("")
		c.head(p, i)
		c.sheet(&c.Groups[i], style).write(p, columns)
	}
	if len(c.Groups) > 0 && len(c.Notes) > 0 {
		p.Line("")
	}
	for _, n := range c.Notes {
		p.Note(n)
	}
	return p.To(w)
}

// answer says which rows are the best of their groups.
func (c *Collation) answer() string {
	rows := 0
	var best []string
	for i := range c.Groups {
		rows += len(c.Groups[i].Rows)
		for k := range c.Groups[i].Rows {
			l := &c.Groups[i].Rows[k]
			for _, q := range c.columns {
				if l.Cells[q.field].Best {
					best = append(best, q.column+" is the best with "+l.Text)
				}
			}
		}
	}
	text := fmt.Sprintf("%s of %s", units.Plural(rows, "row"), shownField(c.Variable))
	if len(c.Groups) > 1 {
		text += fmt.Sprintf(" in %d groups", len(c.Groups))
	}
	switch {
	case len(best) > mostNamedBest:
		return text + ": " + strings.Join(best[:mostNamedBest], ", ") + fmt.Sprintf(" and %d more", len(best)-mostNamedBest)
	case len(best) > 0:
		return text + ": " + strings.Join(best, ", ")
	case rows > 1:
		return text + ": no row is known to be the best"
	}
	return text
}

// mostNamedBest is how many best values the first line names.
const mostNamedBest = 3

// A sheet is a group's table before layout.
type sheet struct {
	head     []string
	rows     []sheetRow
	variable int // VAR's column
}

// A sheetRow is a row of values, and the spreads to show below it.
type sheetRow struct {
	cells, spread []string
	colors        map[int]string
}

func (c *Collation) sheet(g *Group, style layout.Style) *sheet {
	dates := slices.ContainsFunc(g.Rows, func(l Line) bool { return l.RevisionDate != nil })
	flags := g.flagsDiffer()
	revisions := slices.ContainsFunc(g.Follows, func(d Differing) bool { return d.Name == "revision" })
	joined := slices.ContainsFunc(g.Rows, func(l Line) bool { return len(l.Reports) > 1 })
	cols := slices.DeleteFunc(slices.Clone(c.columns), func(col quantity) bool { return !g.anyHas(col.field) })

	s := &sheet{head: []string{"report id", "started"}}
	if dates {
		s.head[1] = "revision date"
	}
	if joined {
		s.head = append(s.head, "runs")
	}
	named := g.named()
	s.head = append(s.head, named...)
	for _, col := range cols {
		s.head = append(s.head, col.column)
	}
	s.variable = len(s.head)
	s.head = append(s.head, shownField(c.Variable))
	if revisions {
		s.head = append(s.head, "revision")
	}
	if flags {
		s.head = append(s.head, "flags")
	}
	for i := range g.Rows {
		l := &g.Rows[i]
		at := l.At
		if dates {
			at = time.Time{}
			if l.RevisionDate != nil {
				at = *l.RevisionDate
			}
		}
		r := sheetRow{cells: []string{l.id(), minute(at)}, spread: []string{"", ""}, colors: map[int]string{s.variable: layout.Bold}}
		if joined {
			r.cells, r.spread = append(r.cells, fmt.Sprint(len(l.Reports))), append(r.spread, "")
		}
		for _, name := range named {
			r.cells, r.spread = append(r.cells, cmp.Or(l.setting(name), "-")), append(r.spread, "")
		}
		for _, col := range cols {
			cell, ok := l.Cells[col.field]
			text, dev := "-", ""
			if ok {
				text, dev = cell.text(), cell.deviation(style.ASCII)
			}
			switch {
			case cell.Best:
				text += "*"
				r.colors[len(r.cells)] = layout.Green
			case cell.Ahead:
				text += "^"
				r.colors[len(r.cells)] = layout.Yellow
			}
			r.cells, r.spread = append(r.cells, text), append(r.spread, dev)
		}
		r.cells = append(r.cells, layout.Cut(l.Text, 60))
		if revisions {
			r.cells = append(r.cells, layout.Cut(l.Revision, 15))
		}
		if flags {
			r.cells = append(r.cells, flagWords(l.Flags))
		}
		s.rows = append(s.rows, r)
	}
	return s
}

// named are the rowSettings that some row of a group has.
func (g *Group) named() []string {
	return slices.DeleteFunc(slices.Clone(rowSettings), func(name string) bool {
		return !slices.ContainsFunc(g.Rows, func(l Line) bool { return l.setting(name) != "" })
	})
}

// id is the newest report of a row, with signs if the generator was the limit
// or made the run noisy; of several runs, with how many of them.
func (l *Line) id() string {
	text := l.Reports[0]
	for _, s := range []struct {
		sign string
		n    int
	}{{"!", l.Untrusted}, {"~", l.Noisy}} {
		switch {
		case s.n == 0:
		case len(l.Reports) == 1:
			text += s.sign
		default:
			text += fmt.Sprintf(" %s%d", s.sign, s.n)
		}
	}
	return text
}

// columnGap is the number of blanks between columns.
const columnGap = 2

// write lays out the sheet.
func (s *sheet) write(p *layout.Page, columns int) {
	width := func(i int) int {
		n := layout.Width(s.head[i])
		for _, r := range s.rows {
			n = max(n, layout.Width(r.cells[i]))
			if i < len(r.spread) {
				n = max(n, layout.Width(r.spread[i]))
			}
		}
		return n
	}
	all, total := make([]int, len(s.head)), -columnGap
	for i := range all {
		all[i] = i
		total += width(i) + columnGap
	}
	if columns <= 0 || total <= columns {
		s.part(p, all, 0)
		return
	}
	part, used := []int{s.variable}, width(s.variable)
	for _, i := range all {
		switch {
		case i == s.variable:
			continue
		case len(part) > 1 && used+columnGap+width(i) > columns:
			s.part(p, part, columns)
			part, used = []int{s.variable}, width(s.variable)
		}
		part, used = append(part, i), used+columnGap+width(i)
	}
	s.part(p, part, columns)
}

// part writes some of the columns.
func (s *sheet) part(p *layout.Page, which []int, columns int) {
	of := func(cells []string) (out []string) {
		for _, i := range which {
			if i < len(cells) {
				out = append(out, cells[i])
			} else {
				out = append(out, "")
			}
		}
		return out
	}
	t := layout.Table{Headings: 1, AutoAlign: true, Elastic: []int{0, len(which) - 1}, Keep: []int{12, 12}}
	for k, i := range which {
		if i < 2 {
			t.Left = append(t.Left, k)
		}
	}
	t.Row(of(s.head)...)
	for _, r := range s.rows {
		t.Row(of(r.cells)...)
		for k, i := range which {
			if code := r.colors[i]; code != "" {
				t.Paint(k, code)
			}
		}
		spread := of(r.spread)
		if !slices.ContainsFunc(spread, func(text string) bool { return text != "" }) {
			continue
		}
		t.Row(spread...)
		for k := range spread {
			t.Paint(k, layout.Dim)
		}
	}
	for _, line := range t.Lines(columns, p.Style) {
		p.Line(line)
	}
}

// firstSettings are the variables that a group's head lists first, even if they
// are the same in all groups.
var firstSettings = []string{"for", "count", "bytes", "events", "spans", "frames", "size", "rate", "shape", "concurrency", "branch", "revision", "system-mem"}

// head writes what the rows of a group share, what else differs among them, and
// what they leave out.
func (c *Collation) head(p *layout.Page, i int) {
	g := &c.Groups[i]
	var items []string
	for _, e := range c.shared(i) {
		items = append(items, shownField(e.Name)+" "+layout.Cut(e.Value, 60))
	}
	for _, l := range packLines(items, p.Columns()) {
		p.Line(p.Paint(layout.Bold, l))
	}
	for _, text := range g.remarks() {
		for _, l := range layout.Wrap(text, p.Columns()) {
			p.Line(p.Paint(layout.Dim, l))
		}
	}
}

// remarks are what else a reader must know of a group.
func (g *Group) remarks() (out []string) {
	if also := g.alsoDiffering(); len(also) > 0 {
		out = append(out, "also differs: "+strings.Join(also, ", "))
	}
	older := 0
	for i := range g.Rows {
		older += g.Rows[i].Older
	}
	if older > 0 {
		out = append(out, fmt.Sprintf("each row has the newest revision; %s of others left out", units.Plural(older, "report")))
	}
	return out
}

// shared are the values that a group's head lists: the usual settings, and what
// differs from other groups, except what its rows name themselves. The facts of a
// target are listed once for all groups that share them.
func (c *Collation) shared(i int) (out []Setting) {
	g := &c.Groups[i]
	named := g.named()
	add := func(name string) {
		for _, e := range g.Equal {
			if e.Name == name && !slices.Contains(named, name) && (name != "system-mem" || e.Value != "none" || slices.Contains(g.Differs, name)) {
				out = append(out, e)
			}
		}
	}
	for _, name := range firstSettings {
		add(name)
	}
	known := c.factsShown(i)
	for _, name := range g.Differs {
		if !slices.Contains(firstSettings, name) && !(known && strings.HasPrefix(name, targetFacts)) {
			add(name)
		}
	}
	if !g.flagsDiffer() {
		out = append(out, g.Rows[0].Flags...)
	}
	return out
}

// targetFacts begins the names of what targets report about themselves, such as
// the settings of a topic.
const targetFacts = "target."

// factsShown is whether an earlier group listed the facts of the group's target,
// and no group has other facts of that target.
func (c *Collation) factsShown(i int) bool {
	facts := func(g *Group) (target string, facts []Setting) {
		for _, e := range g.Equal {
			switch {
			case e.Name == "target":
				target = e.Value
			case strings.HasPrefix(e.Name, targetFacts) && slices.Contains(g.Differs, e.Name):
				facts = append(facts, e)
			}
		}
		return target, facts
	}
	target, own := facts(&c.Groups[i])
	shown := false
	for k := range c.Groups {
		t, f := facts(&c.Groups[k])
		if t != target || k == i {
			continue
		}
		if !slices.Equal(f, own) {
			return false
		}
		shown = shown || k < i
	}
	return shown
}

// alsoDiffering names what differs within a group and has no column.
func (g *Group) alsoDiffering() (out []string) {
	for _, f := range g.Follows {
		if f.Name != "revision" && !slices.Contains(rowSettings, f.Name) { // those have a column
			out = append(out, shownField(f.Name))
		}
	}
	return out
}

// packLines puts items into lines, two blanks apart.
func packLines(items []string, n int) (lines []string) {
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

func (g *Group) anyHas(field string) bool {
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

// shownField is a field's name without the prefix that keeps names apart.
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
	case store.KindNumber:
		text = fmt.Sprintf("%.3f", c.Median)
		if math.Abs(c.Median) >= 100 {
			text = fmt.Sprintf("%.0f", c.Median)
		}
	default:
		text = store.Value{Kind: c.kind, Num: c.Median}.String()
	}
	return strings.TrimSuffix(boundSign(c.AtLeast, c.AtMost), " ") + text
}

// deviation is the spread, "" for a single value.
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
