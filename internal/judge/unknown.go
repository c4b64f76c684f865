package judge

import (
	"slices"
	"strings"

	"carronade/internal/store"
)

// settingsOfTopic begins the settings of a topic: those that are not defaults, and
// a few that always are there. A report has all of them or none.
const settingsOfTopic = topicPrefix + "settings."

// ofClient are facts under "target." that the client knows itself: if one is absent,
// it does not apply.
var ofClient = []string{"target.discards", "target.proxy", "target.tls_verified", "target.tls_name_verified", "target.index.tls_verified"}

// notKnown is whether a fact that a report lacks is unknown: the target, or the
// machine, did not report it. Otherwise it does not exist, such as a limit that is
// not set. An unknown fact does not count as different.
func notKnown(r *store.Row, name string) bool {
	if !environment(name) || name == "target" || slices.Contains(ofClient, name) {
		return false
	}
	switch machine := machineOf(name); {
	case strings.HasPrefix(name, settingsOfTopic):
		return len(r.Under(settingsOfTopic)) == 0
	case machine != "":
		limit := strings.HasSuffix(name, "_limit") // absent if there is none
		return !limit || len(r.Under(machine)) == 0
	case strings.HasPrefix(name, "system."): // described by the run itself
		return !slices.ContainsFunc(r.Under("system."), func(f store.Field) bool { return machineOf(f.Name) == "" })
	}
	return true
}

// machineOf is the prefix of a field of a machine; "" for other fields.
func machineOf(name string) string {
	for _, prefix := range []string{"host.", "system.host."} {
		if strings.HasPrefix(name, prefix) {
			return prefix
		}
	}
	return ""
}

// A factDiffering is a fact whose values are not the same on both sides.
type factDiffering struct {
	Differing
	// known is whether each side has a report that knows the fact.
	known bool
}

// unknownWord stands for the value of a fact that was not reported.
const unknownWord = "unknown"

// factsDiffering are the wanted facts whose known values are not the same on both
// sides, and those of which one side knows nothing.
func factsDiffering(base, candidate []store.Row, wanted func(store.Field) bool) (out []factDiffering) {
	for _, d := range differing(base, candidate, wanted) {
		a, someA := knownValues(d.Base, base, d.Name)
		b, someB := knownValues(d.Candidate, candidate, d.Name)
		if slices.Equal(a, b) {
			continue
		}
		f := factDiffering{Differing{d.Name, a, b}, len(a) > 0 && len(b) > 0}
		if someA {
			f.Base = append(f.Base, unknownWord)
		}
		if someB {
			f.Candidate = append(f.Candidate, unknownWord)
		}
		out = append(out, f)
	}
	return out
}

// knownValues are the values of a fact in rows without those that are unknown, and
// whether some are. values are all of them, with "" for absent.
func knownValues(values []string, rows []store.Row, name string) (known []string, some bool) {
	none := false // some row knows that there is none
	for i := range rows {
		if _, ok := rows[i].Get(name); !ok {
			is := notKnown(&rows[i], name)
			some, none = some || is, none || !is
		}
	}
	known = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
	if none {
		known = append([]string{""}, known...)
	}
	return known, some
}

// withKnown adds unknown facts to rows. It takes them from the rows whose other
// variables are equal, if those rows agree: then all are of one workload and system.
// Facts that may differ within a group are not added.
func withKnown(rows []store.Row, excluded func(string) bool) []store.Row {
	described := func(name string) bool { return environment(name) && name != "target" }
	groups := map[string][]int{}
	var buf []byte
	for i := range rows {
		buf = appendKey(buf[:0], &rows[i], func(name string) bool { return excluded(name) || described(name) })
		groups[string(buf)] = append(groups[string(buf)], i)
	}
	return filled(rows, groups, func(name string) bool { return described(name) && !excluded(name) })
}

// knownIndices are rows that know the Elasticsearch behind their system where others of
// the same system agree on it.
func knownIndices(rows []store.Row) []store.Row {
	at := map[string][]int{}
	for i := range rows {
		system := systemOf(&rows[i])
		at[system] = append(at[system], i)
	}
	return filled(rows, at, func(name string) bool { return strings.HasPrefix(name, indexPrefix) })
}

// filled are rows, of which each also has the wanted facts on which others of its group agree.
// The given rows do not change.
func filled(rows []store.Row, groups map[string][]int, wanted func(string) bool) []store.Row {
	out := slices.Clone(rows)
	for _, at := range groups {
		for _, f := range agreed(rows, at, wanted) {
			for _, i := range at {
				if !hasField(&rows[i], f.Name) {
					out[i].Fields = with(out[i].Fields, f)
				}
			}
		}
	}
	return out
}

// agreed are the independent facts of rows whose known values are all equal, where
// some row lacks them.
func agreed(rows []store.Row, at []int, wanted func(string) bool) (out []store.Field) {
	if len(at) < 2 {
		return nil
	}
	type fact struct {
		store.Field
		rows   int
		differ bool
	}
	facts := map[string]*fact{}
	for _, i := range at {
		for _, f := range rows[i].Fields {
			if !f.Value.Independent || !wanted(f.Name) {
				continue
			}
			if have := facts[f.Name]; have == nil {
				facts[f.Name] = &fact{f, 1, false}
			} else {
				have.rows++
				have.differ = have.differ || have.Value.Text != f.Value.Text || have.Value.Num != f.Value.Num
			}
		}
	}
	for _, f := range facts {
		if f.rows == len(at) || f.differ {
			continue
		}
		none := func(i int) bool { return !hasField(&rows[i], f.Name) && !notKnown(&rows[i], f.Name) }
		if !slices.ContainsFunc(at, none) {
			out = append(out, f.Field)
		}
	}
	return out
}

// with is fields, which are sorted, with one more.
func with(fields []store.Field, f store.Field) []store.Field {
	at, _ := slices.BinarySearchFunc(fields, f.Name, func(f store.Field, name string) int { return strings.Compare(f.Name, name) })
	return slices.Insert(slices.Clone(fields), at, f)
}
