package judge

import (
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/verdict/stats"
)

// A DrawnNumber is a number that pictures show.
type DrawnNumber struct {
	Field  string
	Title  string
	Better string // more or less
}

// Drawn are the numbers by which pictures show a group: throughput, and the p99 of the first time
// that its rows have.
func (c *Collation) Drawn(group int) (out []DrawnNumber) {
	has := func(q quantity) bool {
		return slices.ContainsFunc(c.Groups[group].Rows, func(l Line) bool { _, ok := l.Cells[q.field]; return ok })
	}
	wanted := []quantity{throughput}
	for _, t := range times {
		if q := timeAt(t, "99"); has(q) {
			wanted = append(wanted, q)
			break
		}
	}
	for _, q := range wanted {
		if !has(q) {
			continue
		}
		n := DrawnNumber{Field: q.field, Title: q.title, Better: "more"}
		if q.better == stats.Less {
			n.Better = "less"
		}
		out = append(out, n)
	}
	return out
}

// Apart is what a group has that another one has not, "" if there is only one.
func (c *Collation) Apart(group int) string {
	var parts []string
	g := &c.Groups[group]
	for _, s := range g.Equal {
		if slices.Contains(g.Differs, s.Name) {
			parts = append(parts, shownField(s.Name)+"="+s.Value)
		}
	}
	return layout.Clean(strings.Join(parts, " "))
}

// Name is a row's name in pictures: rows of one value have different flags.
func (l *Line) Name() string {
	if len(l.Flags) > 0 {
		return layout.Clean(l.Text + " (" + flagWords(l.Flags) + ")")
	}
	return layout.Clean(l.Text)
}
