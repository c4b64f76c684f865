package judge

import (
	"slices"
	"strings"
	"time"

	"carronade/internal/digest"
	"carronade/internal/stats"
)

// line joins repetitions: rows of one value of VAR and the same flags, newest
// first. Where they are of several revisions, those of the newest are taken,
// and of it those to start from where there are any.
func (v *variable) line(rows family, isStart map[string]bool) Line {
	value, _ := rows[0].Get(v.name)
	l := Line{Value: value.String(), value: value}
	if v.revisions {
		all := len(rows)
		if own := slices.DeleteFunc(slices.Clone(rows), func(r digest.Row) bool { return !isStart[r.ID] }); len(own) > 0 {
			rows = own
		}
		of := apartBy(rows, revisionKey)
		rows = slices.MaxFunc(of, func(a, b family) int { return committed(&a[0]).Compare(committed(&b[0])) })
		l.Older = all - len(rows)
	}
	l.rows = rows
	l.At = rows[0].At
	for i := range rows {
		r := &rows[i]
		l.Reports = append(l.Reports, r.ID)
		if trusted, ok := r.Num("trusted"); ok && trusted == 0 {
			l.Untrusted++
		}
	}
	l.Revision = rows[0].Text("revision")
	if _, ok := rows[0].Num("revision_date"); ok {
		at := committed(&rows[0])
		l.RevisionDate = &at
	}
	if v.flags {
		for _, f := range rows[0].Under(flagPrefix) {
			l.Flags = append(l.Flags, Setting{strings.TrimPrefix(f.Name, flagPrefix), f.Value.String()})
		}
	}
	return l
}

// revisionKey is equal of rows of one revision of the system.
func revisionKey(r *digest.Row) string {
	var b strings.Builder
	for _, f := range r.Fields {
		if f.Value.Independent && digest.OfRevision(f.Name) {
			b.WriteString(f.Name + "=" + plainValue(f.Value) + "\x00")
		}
	}
	return b.String()
}

// committed is when the revision of a report was made; where that is not known,
// when it ran.
func committed(r *digest.Row) time.Time {
	if x, ok := r.Num("revision_date"); ok {
		return time.Unix(int64(x), 0).UTC()
	}
	return r.At
}

// about says what the rows of a group share, and what differs with VAR.
func (g *Group) about(v *variable) {
	var rows []digest.Row
	for i := range g.Rows {
		rows = append(rows, g.Rows[i].rows...)
	}
	g.Differs, g.Equal = []string{}, []Setting{}
	wanted := func(f digest.Field) bool {
		return f.Value.Independent && f.Name != v.name && !(v.flags && strings.HasPrefix(f.Name, flagPrefix))
	}
	for name, values := range valuesOf(rows, wanted) {
		if len(values) == 1 {
			g.Equal = append(g.Equal, Setting{name, values[0]})
		} else {
			g.Follows = append(g.Follows, Differing{Name: name})
		}
	}
	slices.SortFunc(g.Equal, func(a, b Setting) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(g.Follows, func(a, b Differing) int { return strings.Compare(a.Name, b.Name) })
}

// measure fills in the cells.
func (g *Group) measure(columns []column) {
	for i := range g.Rows {
		l := &g.Rows[i]
		l.Cells = make(map[string]Cell, len(columns))
		for _, c := range columns {
			if cell, ok := cellOf(l.rows, c.field); ok {
				l.Cells[c.field] = cell
			}
		}
	}
}

func cellOf(rows []digest.Row, field string) (Cell, bool) {
	s := sample(rows, field)
	if len(s) == 0 {
		return Cell{}, false
	}
	e := stats.Median(s, stats.Confidence)
	kind := kindOf(field, rows)
	return Cell{
		N: e.N, Median: e.Median, Lo: finite(e.Lo), Hi: finite(e.Hi), Spread: finite(e.Spread()),
		AtLeast: lowerBounds(rows, field), Unit: unitOf(kind), kind: kind,
	}, true
}

// mark finds the best rows, where the statistics carry it: of throughput, of
// the 99th percentile that a group has, and of efficiency, all judged together.
func mark(groups []Group) {
	for gi := range groups {
		g := &groups[gi]
		if len(g.Rows) < 2 {
			continue
		}
		var judged []column
		percentile := false
		for _, c := range columns {
			if c.better == 0 || percentile && strings.HasSuffix(c.field, "_p99") || !g.all(c.field) {
				continue
			}
			percentile = percentile || strings.HasSuffix(c.field, "_p99")
			judged = append(judged, c)
		}
		o := stats.Defaults
		o.Alpha /= float64(max(len(judged), 1))
		for _, c := range judged {
			samples := make([][]float64, len(g.Rows))
			for i := range g.Rows {
				samples[i] = sample(trusted(g.Rows[i].rows), c.field)
			}
			if slices.ContainsFunc(samples, func(s []float64) bool { return len(s) == 0 }) {
				continue // against nothing, nothing is the best
			}
			if best, sure := stats.Best(samples, c.better, o); sure {
				cell := g.Rows[best].Cells[c.field]
				if !cell.AtLeast {
					cell.Best = true
					g.Rows[best].Cells[c.field] = cell
				}
			}
		}
	}
}

// all reports whether every row has the field.
func (g *Group) all(field string) bool {
	return !slices.ContainsFunc(g.Rows, func(l Line) bool { _, ok := l.Cells[field]; return !ok })
}

// trusted are the rows whose generator was not the limit.
func trusted(rows []digest.Row) []digest.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r digest.Row) bool {
		x, ok := r.Num("trusted")
		return ok && x == 0
	})
}
