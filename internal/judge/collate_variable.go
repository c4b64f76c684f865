package judge

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/store"
	"carronade/protocol"
)

func hintedError(doing string, err error, hint string) error {
	return &protocol.Error{Doing: doing, Err: err, Hint: hint}
}

// Prefixes of the names of fields that are flags of the system, and labels.
const (
	flagPrefix  = "flag."
	labelPrefix = "label."
)

// A variable is VAR, and what its values let differ with it.
type variable struct {
	name string
	// flags may differ within a group and are shown: another revision may not
	// have them, and how a workload scales is examined for each set of flags.
	flags bool
	// revisions may differ: VAR is the revision or the branch.
	revisions bool

	mayDifferKnown map[string]bool // results of mayDiffer by name: it is called for every field of every row
}

// variableOf finds VAR among the fields of rows.
func variableOf(rows []store.Row, name string) (*variable, error) {
	name = store.Canonical(name)
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
			return nil, hintedError("collate "+name, errors.New("there are no reports"), "carronade run stores a report of every run")
		}
		return nil, store.UnknownField(name, names)
	}
	return newVariable(found, independent), nil
}

func newVariable(name string, independent bool) *variable {
	v := &variable{name: name, revisions: store.OfRevision(name), mayDifferKnown: make(map[string]bool)}
	v.flags = name == "branch" || independent && !strings.HasPrefix(name, flagPrefix) && !v.revisions
	return v
}

// rank orders the names under which a field is found: its plain name, a flag's,
// a label's.
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
func hasField(r *store.Row, name string) bool {
	_, ok := slices.BinarySearchFunc(r.Fields, name, func(f store.Field, name string) int { return cmp.Compare(f.Name, name) })
	return ok
}

// shown is the name without its prefix, for users.
func (v *variable) shown() string {
	return strings.TrimPrefix(strings.TrimPrefix(v.name, flagPrefix), labelPrefix)
}

// mayDiffer reports whether a field may differ within a group because it
// depends on VAR: the revision on the branch, a topic's partitions on the way
// the topic is created.
func (v *variable) mayDiffer(name string) bool {
	is, ok := v.mayDifferKnown[name]
	if !ok {
		is = v.goesWith(name)
		v.mayDifferKnown[name] = is
	}
	return is
}

func (v *variable) goesWith(name string) bool {
	switch {
	case name == v.name:
		return true
	case v.name == "revision" && name == "branch":
		return false // revisions are compared on one branch
	case v.revisions && store.OfRevision(name):
		return true
	case v.name == "target":
		return strings.HasPrefix(name, "target.")
	case strings.HasPrefix(v.name, indexPrefix): // another Elasticsearch has another address, version and size
		return strings.HasPrefix(name, indexPrefix)
	case v.name == "create-topic" || strings.HasPrefix(v.name, topicPrefix):
		return name == "target" || name == "create-topic" || strings.HasPrefix(name, topicPrefix)
	}
	return false
}

// followsFrom reports whether a setting of an entry has its value because VAR has its own:
// callers with a connection each are as many clients as requests in flight, as in old tools.
func (v *variable) followsFrom(e *entry, f *store.Field) bool {
	return v.name == "concurrency" && f.Name == "clients" && f.Value.Num == e.value.Num
}

// topicPrefix begins the facts of the topic written to, which are decided when
// the topic is created.
const topicPrefix = "target.topic."

// chooses reports whether a filter selects the rows to start from: it is on
// VAR, or on a field that goes with VAR.
func (v *variable) chooses(f store.Filter) bool {
	return v.mayDiffer(f.Name) || v.mayDiffer(flagPrefix+f.Name) || v.mayDiffer(labelPrefix+f.Name)
}

// split separates the filters that select the rows to start from from those
// that apply to every row.
func (v *variable) split(filters store.Filters) (starts, others store.Filters) {
	for _, f := range filters {
		if v.chooses(f) {
			starts = append(starts, f)
		} else {
			others = append(others, f)
		}
	}
	return starts, others
}

// An entry is a row with the keys it is grouped by.
type entry struct {
	store.Row
	value    store.Value // of VAR
	start    bool        // one of the rows to start from
	key      string      // equal where the independent variables are equal, except VAR and what goes with it
	derived  string      // equal where the settings that follow from others are equal
	flags    string      // equal where the system's flags are equal; "" where they are part of the key
	valueKey string      // equal where the values of VAR are equal
}

// A family is rows whose independent variables are equal except for VAR, what
// goes with it, and the system's flags where those may differ; newest first.
type family []*entry

// entries are the rows that have VAR, newest first.
func (v *variable) entries(rows []store.Row) []*entry {
	out := make([]*entry, 0, len(rows))
	var k keys
	for i := range rows {
		value, ok := rows[i].Get(v.name)
		if !ok {
			continue
		}
		if v.name == "target" || v.name == indexAddress {
			value.Text = settingText(&rows[i], store.Field{Name: v.name, Value: value})
		}
		e := &entry{Row: rows[i], value: value, valueKey: valueKey(value)}
		k.of(v, e)
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b *entry) int { return byTime(b.Row, a.Row) })
	return out
}

// keys makes the keys of entries; equal keys share one string.
type keys struct {
	interned            map[string]string
	main, derived, flag []byte
}

func (k *keys) of(v *variable, e *entry) {
	k.main, k.derived, k.flag = k.main[:0], k.derived[:0], k.flag[:0]
	for i := range e.Fields {
		f := &e.Fields[i]
		if !f.Value.Independent || v.mayDiffer(f.Name) {
			continue
		}
		to := &k.main
		switch {
		case f.Value.Derived || v.followsFrom(e, f):
			to = &k.derived
		case v.flags && strings.HasPrefix(f.Name, flagPrefix):
			to = &k.flag
		}
		*to = append(append(*to, f.Name...), '=')
		switch {
		case f.Name == "target", f.Name == indexAddress:
			*to = append(*to, settingText(&e.Row, *f)...)
		case f.Value.Kind == store.KindText:
			*to = append(*to, f.Value.Text...)
		default:
			*to = strconv.AppendFloat(*to, f.Value.Num, 'g', -1, 64)
		}
		*to = append(*to, 0)
	}
	e.key, e.derived, e.flags = k.intern(k.main), k.intern(k.derived), k.intern(k.flag)
}

// intern returns the shared string of a key.
func (k *keys) intern(b []byte) string {
	if s, ok := k.interned[string(b)]; ok {
		return s
	}
	if k.interned == nil {
		k.interned = make(map[string]string)
	}
	s := string(b)
	k.interned[s] = s
	return s
}

// families splits entries into families.
func families(all []*entry) (out []family) {
	for _, f := range groupBy(all, func(e *entry) string { return e.key }) {
		out = append(out, f.splitByDerived()...)
	}
	return out
}

// splitByDerived splits a family by the settings that follow from others,
// unless those follow from VAR: then each value of VAR has one set of them.
func (f family) splitByDerived() []family {
	have := map[string]string{}
	for _, e := range f {
		if d, ok := have[e.valueKey]; ok && d != e.derived {
			return groupBy(f, func(e *entry) string { return e.derived })
		}
		have[e.valueKey] = e.derived
	}
	return []family{f}
}

// valueKey is equal for equal values, however they were typed.
func valueKey(v store.Value) string {
	if v.Kind == store.KindText {
		return v.Text
	}
	return strconv.FormatFloat(v.Num, 'g', -1, 64)
}

// groupBy groups entries by a key, in the order in which the keys first occur.
func groupBy(all []*entry, key func(*entry) string) (out []family) {
	at := map[string]int{}
	for _, e := range all {
		k := key(e)
		j, ok := at[k]
		if !ok {
			j = len(out)
			at[k] = j
			out = append(out, nil)
		}
		out[j] = append(out[j], e)
	}
	return out
}

// groups makes the groups of a family: one, unless the values to start from
// were run with several sets of flags, which are not repetitions of each other.
// Then each set is a group, next to the rows of the other values: those with the
// same flags if there are any.
func (v *variable) groups(f family) (out []Group) {
	flags := func(e *entry) string { return e.flags }
	values := groupBy(f, func(e *entry) string { return e.valueKey })
	shown, alike := map[string]bool{}, map[string]int{}
	for _, same := range values {
		alike[same[0].value.String()]++
	}
	for _, own := range groupBy(f, flags) { // newest first
		if !slices.ContainsFunc(own, func(e *entry) bool { return e.start && !shown[e.ID] }) {
			continue
		}
		var g Group
		for _, same := range values {
			sets := groupBy(same, flags)
			if i := slices.IndexFunc(sets, func(s family) bool { return s[0].flags == own[0].flags }); i >= 0 {
				sets = sets[i : i+1]
			}
			for _, set := range sets {
				l := v.line(set)
				if alike[l.Text] > 1 && l.value.Text != "" {
					l.Text = l.value.Text // all digits: rounded, the values look equal
				}
				g.Rows = append(g.Rows, l)
				for _, e := range set { // also those that the row leaves out: older revisions of a branch
					shown[e.ID] = true
				}
			}
		}
		for i := range g.Rows {
			if at := g.Rows[i].At; at.After(g.newest) {
				g.newest = at
			}
		}
		out = append(out, g)
	}
	return out
}
