package judge

import (
	"slices"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/load"
)

// A LeftOut is a report that is not judged.
type LeftOut struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// notTrusted is why a run is left out that is judged if untrusted runs are accepted.
const notTrusted = "not trustworthy: the generator was the limit"

// noneFit is the error of reports that are all left out: ErrUntrusted or ErrNoneFit.
func noneFit(out []LeftOut) error {
	if slices.ContainsFunc(out, func(l LeftOut) bool { return l.Why == notTrusted }) {
		return ErrUntrusted
	}
	return ErrNoneFit
}

// unfit says why a report cannot be judged, "" if it can: its run is still
// running, was cut short or measured nothing, or its generator was the limit,
// unless untrusted runs are accepted.
func unfit(r *store.Row, untrusted bool) string {
	truth := func(name string) (is, known bool) {
		v, ok := r.Num(name)
		return v != 0, ok
	}
	_, measured := r.Num(throughput.field)
	_, found := r.Num(ceiling.field)
	partial, _ := truth("partial")
	trusted, known := truth("trusted")
	stopped := r.Text("stopped")
	switch {
	case r.Running:
		return "still running"
	case (partial || stopped == string(load.Killed)) && stopped != "":
		return "cut short (" + stopped + ")"
	case partial:
		return "cut short"
	case r.Text("mode") == string(report.InScenario):
		return "a scenario, whose steps can be judged"
	case !measured && !found:
		return "empty"
	case refused(r):
		return "no event was accepted"
	case known && !trusted && !untrusted:
		return notTrusted
	}
	return ""
}

// refused reports whether a run got refusals, and not one event was accepted: where nothing is acknowledged,
// nothing is refused.
func refused(r *store.Row) bool {
	acked, known := r.Num("acked")
	failed, _ := r.Num("failed")
	return known && acked == 0 && failed > 0
}

// fit separates the rows that can be judged from those that cannot.
func fit(rows []store.Row, untrusted bool) (fit []store.Row, out []LeftOut) {
	for i := range rows {
		if why := unfit(&rows[i], untrusted); why != "" {
			out = append(out, LeftOut{rows[i].ID, why})
		} else {
			fit = append(fit, rows[i])
		}
	}
	return fit, out
}

// died is whether a run ended because the system under test did, or because no connection to it was left. A caller that
// leaves such runs out must still count them: the remaining runs are a favourable
// selection.
func died(r *store.Row) bool {
	why := load.Reason(r.Text("stopped"))
	return why == load.BySystem || why == load.ByLoss
}

// aborted is whether a run says nothing about what it measured, not even that
// it could not be measured: it is still running, or a user ended it early.
func aborted(r *store.Row) bool {
	partial, known := r.Num("partial")
	return r.Running || r.Text("stopped") == string(load.Interrupted) && (partial != 0 || !known)
}

// count counts the rows for which so is true.
func count(rows []store.Row, so func(*store.Row) bool) (n int) {
	for i := range rows {
		if so(&rows[i]) {
			n++
		}
	}
	return n
}

// bundlesWithUnfit splits rows by their variables as bundles does, including
// rows that cannot be judged. A failed run may lack some facts about the
// servers. It belongs to the workload with which it shares everything else, or
// to the newest of several.
func bundlesWithUnfit(rows []store.Row, excluded func(string) bool, untrusted bool) []bundle {
	var good, bad []store.Row
	rows = withKnown(rows, excluded)
	for i := range rows {
		if unfit(&rows[i], untrusted) == "" {
			good = append(good, rows[i])
		} else {
			bad = append(bad, rows[i])
		}
	}
	out := bundles(good, excluded)
	of := make(map[string]int, len(out))
	for i := range out {
		of[out[i].key] = i
	}
	home := func(r *store.Row) int {
		if i, ok := of[key(r, excluded)]; ok {
			return i
		}
		at := -1
		for i := range out {
			last := out[i].rows[len(out[i].rows)-1]
			if sameVariables(r, &last, excluded) && (at < 0 || last.At.After(out[at].rows[len(out[at].rows)-1].At)) {
				at = i
			}
		}
		return at
	}
	at := make([]int, len(bad)) // before any is added: they join only what was measured
	for i := range bad {
		at[i] = home(&bad[i])
	}
	var rest []store.Row
	for i, r := range bad {
		if at[i] < 0 {
			rest = append(rest, r)
		} else {
			out[at[i]].rows = append(out[at[i]].rows, r)
		}
	}
	for i := range out {
		slices.SortStableFunc(out[i].rows, byTime)
	}
	return append(out, bundles(rest, excluded)...)
}

// sameVariables is whether a row has the variables of another. Variables that
// servers report about themselves may be unknown to either.
func sameVariables(r, other *store.Row, excluded func(string) bool) bool {
	for _, f := range r.Fields {
		if !f.Value.Independent || excluded(f.Name) {
			continue
		}
		v, ok := other.Get(f.Name)
		switch {
		case !ok && !notKnown(other, f.Name):
			return false
		case ok && settingText(r, f) != settingText(other, store.Field{Name: f.Name, Value: v}) && !f.Value.Equal(v):
			return false
		}
	}
	for _, f := range other.Fields {
		if f.Value.Independent && !excluded(f.Name) {
			if _, ok := r.Get(f.Name); !ok && !notKnown(r, f.Name) {
				return false
			}
		}
	}
	return true
}
