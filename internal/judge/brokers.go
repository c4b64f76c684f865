package judge

import (
	"fmt"
	"slices"
	"strings"

	"carronade/internal/store"
)

// The settings of Kafka's brokers, and how many brokers described theirs.
const (
	brokerSettings   = "target.broker_settings."
	brokersDescribed = "target.brokers_described"
	brokersAll       = "target.brokers"
)

func isBrokerSetting(f store.Field) bool { return strings.HasPrefix(f.Name, brokerSettings) }

// describedOf is how many brokers described their settings to a run, and how
// many brokers there are. Reports made before these were counted have the
// settings of all brokers, or of none.
func describedOf(r *store.Row) (described, of float64) {
	described, counted := r.Num(brokersDescribed)
	of, ok := r.Num(brokersAll)
	if !ok {
		of = 1
	}
	if !counted && len(r.Under(brokerSettings)) > 0 {
		described = of
	}
	return described, of
}

// brokerFindings are the settings of the servers that differ. A run that could
// not query all brokers (it needs a permission, and an answer in time) provides
// no information on the settings it lacks: that is one finding per side, which
// is not severe.
func brokerFindings(base, candidate []store.Row) []Finding {
	silent := func(r *store.Row) bool { n, _ := describedOf(r); return n == 0 }
	if count(base, silent) == len(base) && count(candidate, silent) == len(candidate) { // also true of targets without brokers
		return nil
	}
	a, text := describing("base", base)
	b, other := describing("candidate", candidate)
	var out []Finding
	for _, t := range []string{text, other} {
		if t != "" {
			out = append(out, Finding{false, "servers", t})
		}
	}
	if len(a) == 0 || len(b) == 0 {
		return out
	}
	lastA, cutA := lastSetting(a)
	lastB, cutB := lastSetting(b)
	for _, d := range differing(a, b, isBrokerSetting) {
		name := strings.TrimPrefix(d.Name, brokerSettings)
		switch {
		case name == store.RestName:
			out = append(out, Finding{true, "servers", "too many broker settings differ to list (report show --json has both)"})
		case cutA && d.Name > lastA && !described(d.Base), cutB && d.Name > lastB && !described(d.Candidate): // it is among the settings that are only summed up
		default:
			out = append(out, Finding{true, "servers", plainField(d.Name) + " " + d.words()})
		}
	}
	return out
}

// describing are the runs of a side that know the settings of all brokers, and
// a text about the others.
func describing(side string, rows []store.Row) (all []store.Row, text string) {
	var least, of float64
	for i := range rows {
		n, m := describedOf(&rows[i])
		switch {
		case n >= m:
			all = append(all, rows[i])
		case of == 0 || n < least:
			least, of = n, m
		}
	}
	switch missing := len(rows) - len(all); {
	case missing == 0:
		return all, ""
	case missing < len(rows):
		return all, fmt.Sprintf("%d of the %s's %d runs do not know all brokers' settings", missing, side, len(rows))
	case least > 0:
		return nil, fmt.Sprintf("only %d of %d brokers of the %s reported their settings", int(least), int(of), side)
	}
	return nil, "the " + side + " does not know its brokers' settings"
}

// lastSetting is the last of the settings of a side by name, and whether there
// are more.
func lastSetting(rows []store.Row) (last string, cut bool) {
	for i := range rows {
		for _, f := range rows[i].Under(brokerSettings) {
			if f.Name == brokerSettings+store.RestName {
				cut = true
			} else {
				last = max(last, f.Name)
			}
		}
	}
	return last, cut
}

// described is whether any report of a side has a value.
func described(values []string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return v != "" })
}
