package judge

import (
	"cmp"
	"slices"
	"strings"

	"carronade/internal/store"
	"carronade/internal/workload"
)

// columnsOf are the columns that some row has. Service times are left out if
// there are response times, which are more meaningful in a scheduled run.
// Failures have a column only if there were some. The further ones follow.
func columnsOf(groups []Group, further []string) ([]quantity, error) {
	has := func(field string) bool {
		for _, g := range groups {
			for _, l := range g.Rows {
				for _, e := range l.entries {
					if x, ok := e.Num(field); ok && (field != "failure_share" || x > 0) {
						return true
					}
				}
			}
		}
		return false
	}
	response := has("response_p50")
	var out []quantity
	for _, c := range columns {
		if !has(c.field) || response && strings.HasPrefix(c.field, "service_") {
			continue
		}
		out = append(out, c)
	}
	for _, name := range further {
		field := columnField(name)
		names := map[string]bool{}
		for _, f := range store.Fields() {
			names[f.Name] = f.Kind != store.KindText
		}
		switch {
		case !names[field]:
			return nil, store.UnknownField(name, names)
		case !slices.ContainsFunc(out, func(c quantity) bool { return c.field == field }):
			out = append(out, quantity{field: field, column: strings.ReplaceAll(field, "_", " ")})
		}
	}
	return out, nil
}

// columnField is the field of a further column: by the name of a result, as limits have it, or by its own.
func columnField(name string) string {
	if r := workload.ResultNamed(name); r != nil {
		return r.Field
	}
	return store.Canonical(strings.ReplaceAll(name, "-", "_"))
}

// A sorter orders lines by a field.
type sorter struct {
	field string // "": by VAR
	down  bool
}

// sorterOf parses --sort: a field of any report, which sorts the best or the
// newest first, or a field after "-", which reverses the order.
func sorterOf(rows []store.Row, text, variable string) (sorter, error) {
	field, reverse := strings.CutPrefix(text, "-")
	if field == "" {
		return sorter{}, nil
	}
	field = store.Canonical(field)
	names := map[string]bool{}
	for i := range rows {
		v, ok := rows[i].Get(field)
		if !ok {
			for _, f := range rows[i].Fields {
				names[f.Name] = true
			}
			continue
		}
		up := field == variable || v.Kind == store.KindText || v.Kind == store.KindDuration && !v.Independent || ascending(field)
		return sorter{field: field, down: up == reverse}, nil
	}
	if isColumn(field) {
		return sorter{field: field, down: true}, nil // no report has it
	}
	return sorter{}, store.UnknownField(field, names)
}

func isColumn(field string) bool {
	return field == "revision_date" || slices.ContainsFunc(columns, func(c quantity) bool { return c.field == field })
}

// of is the line's value; for numbers, the median.
func (s sorter) of(l *Line) (store.Value, bool) {
	v, ok := l.entries[0].Get(s.field)
	if c, have := cellOf(l.rows(), s.field); ok && have && v.Kind != store.KindText {
		v.Num = c.Median
	}
	return v, ok
}

// compare orders lines; those without the field come last.
func (s sorter) compare(a, b *Line) int {
	x, ok := s.of(a)
	y, too := s.of(b)
	switch {
	case !ok || !too:
		return boolOrder(ok, too)
	case s.down:
		return y.Compare(x)
	}
	return x.Compare(y)
}

func boolOrder(first, second bool) int {
	switch {
	case first == second:
		return 0
	case first:
		return -1
	}
	return 1
}

// sort orders the rows of a group: by the requested field; otherwise the rows
// to start from first if only some are, and then by VAR.
func (g *Group) sort(s sorter, v *variable) {
	slices.SortStableFunc(g.Rows, func(a, b Line) int {
		if s.field != "" {
			if c := s.compare(&a, &b); c != 0 {
				return c
			}
		}
		if c := boolOrder(a.starts(), b.starts()); c != 0 && s.field == "" {
			return c
		}
		if v.name == "revision" && s.field == "" {
			return committed(&b.entries[0].Row).Compare(committed(&a.entries[0].Row))
		}
		return cmp.Or(a.value.Compare(b.value), b.At.Compare(a.At))
	})
}

func (l *Line) starts() bool {
	return slices.ContainsFunc(l.entries, func(e *entry) bool { return e.start })
}

// groups orders groups by their first rows; without a field, the newest first.
func (s sorter) groups(groups []Group) {
	slices.SortStableFunc(groups, func(a, b Group) int {
		if s.field != "" {
			if c := s.compare(&a.Rows[0], &b.Rows[0]); c != 0 {
				return c
			}
		}
		return b.newest.Compare(a.newest)
	})
}

// markDifferences finds the variables that groups differ in. A group that lacks
// a setting differs from those of its kind that have it. Facts that a target
// reports, and settings of other kinds, differ only between groups that have
// them; the column of the target shows the rest.
func markDifferences(groups []Group) {
	kind := func(g *Group) string { r := &g.Rows[0].entries[0].Row; return r.Text("op") + " " + r.Text("kind") }
	ofKind := map[string]int{}
	values := map[string]map[string]bool{}
	count := map[string]map[string]int{} // by name and kind
	for i := range groups {
		k := kind(&groups[i])
		ofKind[k]++
		for _, e := range groups[i].Equal {
			if values[e.Name] == nil {
				values[e.Name], count[e.Name] = map[string]bool{}, map[string]int{}
			}
			values[e.Name][e.Value] = true
			count[e.Name][k]++
		}
	}
	for i := range groups {
		k := kind(&groups[i])
		for _, e := range groups[i].Equal {
			if len(values[e.Name]) > 1 || count[e.Name][k] < ofKind[k] && !strings.HasPrefix(e.Name, targetFacts) {
				groups[i].Differs = append(groups[i].Differs, e.Name)
			}
		}
	}
}
