package judge

import (
	"slices"
	"strings"
	"time"

	"carronade/internal/store"
	"carronade/internal/verdict/stats"
)

// rowSettings are the settings that every row names, so that it says what it
// is of without its group's head.
var rowSettings = []string{"rate", "acks"}

// setting is the value of one of the rowSettings, "" if the row has none.
func (l *Line) setting(name string) string {
	for _, s := range l.Settings {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

// line joins repetitions: entries with one value of VAR and the same flags,
// newest first. If they are of several revisions, it takes those of the newest
// revision; if some entries are to start from, it considers only those.
func (v *variable) line(f family) Line {
	value := f[0].value
	l := Line{Value: value.Any(), value: value, Text: value.String()}
	if v.revisions {
		all := len(f)
		if own := slices.DeleteFunc(slices.Clone(f), func(e *entry) bool { return !e.start }); len(own) > 0 {
			f = own
		}
		f = slices.MaxFunc(groupBy(f, v.revisionKey), func(a, b family) int { return committed(&a[0].Row).Compare(committed(&b[0].Row)) })
		l.Older = all - len(f)
	}
	l.entries = f
	l.At = f[0].At
	l.Settings = []Setting{}
	for _, name := range rowSettings {
		if text := f[0].Text(name); text != "" && name != v.name {
			l.Settings = append(l.Settings, Setting{name, text})
		}
	}
	for _, e := range f {
		l.Reports = append(l.Reports, e.ID)
		if trusted, ok := e.Num("trusted"); ok && trusted == 0 {
			l.Untrusted++
		} else if noisy(&e.Row) {
			l.Noisy++
		}
	}
	l.Revision = f[0].Text("revision")
	if _, ok := f[0].Num("revision_date"); ok {
		at := committed(&f[0].Row)
		l.RevisionDate = &at
	}
	if v.flags {
		for _, f := range f[0].Under(flagPrefix) {
			l.Flags = append(l.Flags, Setting{strings.TrimPrefix(f.Name, flagPrefix), f.Value.String()})
		}
	}
	return l
}

// rows are the reports of a line.
func (l *Line) rows() []store.Row {
	out := make([]store.Row, len(l.entries))
	for i, e := range l.entries {
		out[i] = e.Row
	}
	return out
}

// revisionKey is equal for reports of one revision of the system: it is made of
// all fields that may differ with VAR.
func (v *variable) revisionKey(e *entry) string {
	var b []byte
	for i := range e.Fields {
		if f := &e.Fields[i]; f.Value.Independent && v.mayDiffer(f.Name) {
			b = append(append(append(append(b, f.Name...), '='), valueKey(f.Value)...), 0)
		}
	}
	return string(b)
}

// committed is when the revision of a report was made; if that is not known,
// when the report's run was.
func committed(r *store.Row) time.Time {
	if x, ok := r.Num("revision_date"); ok {
		return time.Unix(int64(x), 0).UTC()
	}
	return r.At
}

// describe finds what the rows of a group share, and what differs with VAR.
func (g *Group) describe(v *variable) {
	var rows []store.Row
	for i := range g.Rows {
		rows = append(rows, g.Rows[i].rows()...)
	}
	g.Differs, g.Equal = []string{}, []Setting{}
	wanted := func(f store.Field) bool {
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

// fillCells fills in the cells.
func (g *Group) fillCells(columns []quantity) {
	for i := range g.Rows {
		l := &g.Rows[i]
		l.Cells = make(map[string]Cell, len(columns))
		rows := l.rows()
		for _, c := range columns {
			if cell, ok := cellOf(rows, c.field); ok {
				l.Cells[c.field] = cell
			}
		}
	}
}

func cellOf(rows []store.Row, field string) (Cell, bool) {
	s := sample(rows, field)
	if len(s) == 0 {
		return Cell{}, false
	}
	e := stats.Median(s, stats.Confidence)
	kind := kindOf(field, rows)
	return Cell{
		N: e.N, Median: e.Median, Lo: finite(e.Lo), Hi: finite(e.Hi), Spread: finite(e.Spread()),
		AtLeast: lowerBounds(field, rows), AtMost: upperBounds(field, rows), Unit: unitOf(kind), kind: kind,
	}, true
}
