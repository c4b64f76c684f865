package judge

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/digest"
	"carronade/target"
)

func fault(doing string, err error, hint string) error {
	return &target.Error{Doing: doing, Err: err, Hint: hint}
}

// The names of the fields of the system's flags, and of labels, begin so.
const (
	flagPrefix  = "flag."
	labelPrefix = "label."
)

// A variable is VAR, and what its values let differ with it.
type variable struct {
	name string
	// flags may differ within a group and are shown: another revision may not
	// have them, and how a workload scales is asked of each of them apart.
	flags bool
	// revisions may differ: VAR says which it is, or on which branch.
	revisions bool
}

// variableOf finds VAR among the fields of rows.
func variableOf(rows []digest.Row, name string) (*variable, error) {
	name = digest.Canonical(name)
	names := make(map[string]bool, 256)
	independent := false
	found := ""
	for i := range rows {
		for _, n := range []string{name, flagPrefix + name, labelPrefix + name} {
			if v, ok := rows[i].Get(n); ok && hasField(&rows[i], n) {
				if found == "" || rank(n) < rank(found) {
					found = n
				}
				if n == found {
					independent = independent || v.Independent
				}
			}
		}
		if found == "" {
			for _, f := range rows[i].Fields {
				names[f.Name] = true
			}
		}
	}
	if found == "" {
		if len(rows) == 0 {
			return nil, fault("collate "+name, errors.New("there are no reports"), "carronade run keeps one of every run")
		}
		return nil, digest.Unknown(name, names)
	}
	v := &variable{name: found, revisions: digest.OfRevision(found)}
	isFlag := strings.HasPrefix(found, flagPrefix)
	v.flags = found == "branch" || independent && !isFlag && !v.revisions
	return v, nil
}

// rank orders the names under which a field is found: its own, a flag's, a
// label's.
func rank(name string) int {
	switch {
	case strings.HasPrefix(name, flagPrefix):
		return 1
	case strings.HasPrefix(name, labelPrefix):
		return 2
	}
	return 0
}

// hasField reports whether a row has a field of exactly this name.
func hasField(r *digest.Row, name string) bool {
	_, ok := slices.BinarySearchFunc(r.Fields, name, func(f digest.Field, name string) int { return cmp.Compare(f.Name, name) })
	return ok
}

// shown is the name as people know it.
func (v *variable) shown() string {
	return strings.TrimPrefix(strings.TrimPrefix(v.name, flagPrefix), labelPrefix)
}

// frees reports whether a field may differ within a group since it goes with
// VAR: the revision with the branch, a topic's partitions with how it is made.
func (v *variable) frees(name string) bool {
	switch {
	case name == v.name:
		return true
	case v.name == "revision" && name == "branch":
		return false // revisions are compared on one branch
	case v.revisions && digest.OfRevision(name):
		return true
	case v.name == "target":
		return strings.HasPrefix(name, "target.")
	case v.name == "create-topic" || strings.HasPrefix(v.name, topicPrefix):
		return name == "target" || name == "create-topic" || strings.HasPrefix(name, topicPrefix)
	}
	return false
}

// topicPrefix begins the facts of what is written to, which are decided when it
// is made.
const topicPrefix = "target.topic."

// split parts the filters that choose what to start from from those that hold
// for every row.
func (v *variable) split(filters digest.Filters) (starts, others digest.Filters) {
	for _, f := range filters {
		if v.frees(f.Name) || v.frees(flagPrefix+f.Name) || v.frees(labelPrefix+f.Name) {
			starts = append(starts, f)
		} else {
			others = append(others, f)
		}
	}
	return starts, others
}

// A family is rows whose independent variables are the same but for VAR, what
// goes with it, and the system's flags where those may differ.
type family []digest.Row

// families sorts rows apart, newest first.
func (v *variable) families(rows []digest.Row) (out []family) {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b digest.Row) int { return byTime(b, a) })
	for _, f := range apartBy(sorted, func(r *digest.Row) string {
		return v.keyOf(r, func(f *digest.Field) bool {
			return !f.Value.Derived && !(v.flags && strings.HasPrefix(f.Name, flagPrefix))
		})
	}) {
		out = append(out, v.derived(f)...)
	}
	return out
}

// derived parts a family by the settings that follow from others, unless those
// follow from VAR: then each of its values has one of theirs.
func (v *variable) derived(f family) []family {
	of := func(r *digest.Row) string {
		return v.keyOf(r, func(f *digest.Field) bool { return f.Value.Derived })
	}
	have := map[string]string{}
	for i := range f {
		value, _ := f[i].Get(v.name)
		k := plainValue(value)
		if d, ok := have[k]; ok && d != of(&f[i]) {
			return apartBy(f, of)
		}
		have[k] = of(&f[i])
	}
	return []family{f}
}

// keyOf is equal of rows whose independent variables are, of those that count.
func (v *variable) keyOf(r *digest.Row, counts func(*digest.Field) bool) string {
	b := make([]byte, 0, 512)
	for i := range r.Fields {
		f := &r.Fields[i]
		if !f.Value.Independent || v.frees(f.Name) || !counts(f) {
			continue
		}
		b = append(append(b, f.Name...), '=')
		if f.Name == "target" {
			b = append(b, settled(*f)...)
		} else {
			b = append(b, plainValue(f.Value)...)
		}
		b = append(b, 0)
	}
	return string(b)
}

// plainValue is equal of values that are, however they were typed.
func plainValue(v digest.Value) string {
	if v.Kind == digest.Text {
		return v.Text
	}
	return strconv.FormatFloat(v.Num, 'g', -1, 64)
}

// apartBy sorts rows apart by a key, in the order in which each is first met.
func apartBy(rows []digest.Row, key func(*digest.Row) string) (out []family) {
	at := map[string]int{}
	for i := range rows {
		k := key(&rows[i])
		j, ok := at[k]
		if !ok {
			j = len(out)
			at[k] = j
			out = append(out, nil)
		}
		out[j] = append(out[j], rows[i])
	}
	return out
}

// groups makes the groups of a family: one, unless the values to start from
// were run with several sets of flags, which are no repetitions of each other.
// Each of those is a group then, beside what the other values have: rows of the
// same flags where there are any.
func (v *variable) groups(f family, isStart map[string]bool) (out []Group) {
	flags := func(r *digest.Row) string {
		if !v.flags {
			return ""
		}
		return flagsKey(r)
	}
	values := apartBy(f, func(r *digest.Row) string { x, _ := r.Get(v.name); return plainValue(x) })
	shown := map[string]bool{}
	for _, own := range apartBy(f, flags) { // newest first
		k := flags(&own[0])
		if !slices.ContainsFunc(own, func(r digest.Row) bool { return isStart[r.ID] && !shown[r.ID] }) {
			continue
		}
		var g Group
		for _, same := range values {
			sets := apartBy(same, flags)
			if i := slices.IndexFunc(sets, func(s family) bool { return flags(&s[0]) == k }); i >= 0 {
				sets = sets[i : i+1]
			}
			for _, set := range sets {
				g.Rows = append(g.Rows, v.line(set, isStart))
			}
		}
		for i := range g.Rows {
			for _, r := range g.Rows[i].rows {
				shown[r.ID] = true
			}
			if at := g.Rows[i].At; at.After(g.newest) {
				g.newest = at
			}
		}
		out = append(out, g)
	}
	return out
}

// flagsKey is equal of rows whose system had the same flags.
func flagsKey(r *digest.Row) string {
	var b strings.Builder
	for _, f := range r.Under(flagPrefix) {
		b.WriteString(f.Name + "=" + plainValue(f.Value) + "\x00")
	}
	return b.String()
}
