package judge

import (
	"slices"
	"strconv"
	"strings"

	"carronade/internal/store"
)

// A Setting is an independent variable and its value.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// environment is whether a field describes where a run was made, not what it
// did.
func environment(name string) bool {
	return name == "target" || strings.HasPrefix(name, "target.") || strings.HasPrefix(name, "host.") || strings.HasPrefix(name, "system.")
}

// independentsOf are a row's independent variables except the excluded ones, in
// the order of their names.
func independentsOf(r *store.Row, excluded func(string) bool) []Setting {
	var out []Setting
	for _, f := range r.Fields {
		if f.Value.Independent && !excluded(f.Name) {
			out = append(out, Setting{f.Name, settingText(r, f)})
		}
	}
	return out
}

// settingText is a value of a row in the form in which it is compared with others.
func settingText(r *store.Row, f store.Field) string {
	switch f.Name {
	case "target":
		return identity(r, f.Value.Text)
	case indexAddress:
		return indexIdentity(r, f.Value.Text)
	}
	return f.Value.String()
}

// key is equal for rows with equal variables, however those were typed.
func key(r *store.Row, excluded func(string) bool) string {
	return string(appendKey(nil, r, excluded))
}

func appendKey(b []byte, r *store.Row, excluded func(string) bool) []byte {
	for _, f := range r.Fields {
		if !f.Value.Independent || excluded(f.Name) {
			continue
		}
		b = append(append(b, f.Name...), '=')
		switch {
		case f.Name == "target", f.Name == indexAddress:
			b = append(b, settingText(r, f)...)
		case f.Value.Kind == store.KindText:
			b = append(b, f.Value.Text...)
		default:
			b = strconv.AppendFloat(b, f.Value.Num, 'g', -1, 64)
		}
		b = append(b, 0)
	}
	return b
}

// A bundle is rows with equal variables, in the order of time.
type bundle struct {
	key      string
	system   string // of all rows; "": not split by system
	settings []Setting
	rows     []store.Row
}

// bundles splits rows by their variables. The bundles are in the order of their
// first rows.
func bundles(rows []store.Row, excluded func(string) bool) []bundle {
	var out []bundle
	at := map[string]int{}
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, byTime)
	var buf []byte
	for i := range sorted {
		buf = appendKey(buf[:0], &sorted[i], excluded)
		j, ok := at[string(buf)]
		if !ok {
			j = len(out)
			k := string(buf)
			at[k] = j
			out = append(out, bundle{key: k, settings: independentsOf(&sorted[i], excluded)})
		}
		out[j].rows = append(out[j].rows, sorted[i])
	}
	return out
}

func byTime(a, b store.Row) int {
	if c := a.At.Compare(b.At); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}

// A Differing is a field whose values are not the same on both sides. A side
// may have several values, or none.
type Differing struct {
	Name      string   `json:"name"`
	Base      []string `json:"base"`
	Candidate []string `json:"candidate"`
}

// differing are the wanted fields whose values are not the same on both sides.
func differing(base, candidate []store.Row, wanted func(store.Field) bool) []Differing {
	a, b := valuesOf(base, wanted), valuesOf(candidate, wanted)
	var names []string
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []Differing
	for _, name := range names {
		if !slices.Equal(a[name], b[name]) {
			out = append(out, Differing{Name: name, Base: a[name], Candidate: b[name]})
		}
	}
	return out
}

// valuesOf are the distinct values of the wanted fields, sorted; "" means that
// a row has none.
func valuesOf(rows []store.Row, wanted func(store.Field) bool) map[string][]string {
	out := map[string][]string{}
	have := map[string]int{}
	for i := range rows {
		for _, f := range rows[i].Fields {
			if !wanted(f) {
				continue
			}
			have[f.Name]++
			if v := settingText(&rows[i], f); !slices.Contains(out[f.Name], v) {
				out[f.Name] = append(out[f.Name], v)
			}
		}
	}
	for name, n := range have {
		if n < len(rows) {
			out[name] = append(out[name], "")
		}
		slices.Sort(out[name])
	}
	return out
}
