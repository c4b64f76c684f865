package judge

import (
	"slices"

	"carronade/internal/digest"
	"carronade/load"
)

// A LeftOut report is one that is not judged.
type LeftOut struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// unfit says why a report cannot be judged, "" if it can: its run goes on, was
// cut short or measured nothing, or its generator was the limit, unless such
// are wanted.
func unfit(r *digest.Row, untrusted bool) string {
	truth := func(name string) (is, known bool) {
		v, ok := r.Num(name)
		return v != 0, ok
	}
	_, measured := r.Num(throughput.field)
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
	case !measured:
		return "empty"
	case known && !trusted && !untrusted:
		return "not trustworthy: the generator was the limit"
	}
	return ""
}

// fit sorts out what cannot be judged.
func fit(rows []digest.Row, untrusted bool) (fit []digest.Row, out []LeftOut) {
	for i := range rows {
		if why := unfit(&rows[i], untrusted); why != "" {
			out = append(out, LeftOut{rows[i].ID, why})
		} else {
			fit = append(fit, rows[i])
		}
	}
	return fit, out
}

// died is whether a run ended because the system under test did, which no one
// who leaves such runs out may forget: those that are left are the good ones.
func died(r *digest.Row) bool { return r.Text("stopped") == string(load.BySystem) }

// aborted is whether a run says nothing of what it measured, not even that it
// could not be measured: it goes on, or somebody ended it before it was done.
func aborted(r *digest.Row) bool {
	partial, known := r.Num("partial")
	return r.Running || r.Text("stopped") == string(load.Interrupted) && (partial != 0 || !known)
}

// count counts rows that are so.
func count(rows []digest.Row, so func(*digest.Row) bool) (n int) {
	for i := range rows {
		if so(&rows[i]) {
			n++
		}
	}
	return n
}

// bundled sorts rows apart by their variables, as bundles does, those that
// cannot be judged included. A run that came to nothing may not know all that
// others know of the servers: it belongs to the workload that it shares
// everything else with, the newest of several.
func bundled(rows []digest.Row, free func(string) bool, untrusted bool) []bundle {
	var good, bad []digest.Row
	for i := range rows {
		if unfit(&rows[i], untrusted) == "" {
			good = append(good, rows[i])
		} else {
			bad = append(bad, rows[i])
		}
	}
	out := bundles(good, free)
	of := make(map[string]int, len(out))
	for i := range out {
		of[out[i].key] = i
	}
	home := func(r *digest.Row) int {
		if i, ok := of[key(r, free)]; ok {
			return i
		}
		at := -1
		for i := range out {
			last := out[i].rows[len(out[i].rows)-1]
			if alike(r, &last, free) && (at < 0 || last.At.After(out[at].rows[len(out[at].rows)-1].At)) {
				at = i
			}
		}
		return at
	}
	at := make([]int, len(bad)) // before any is added: what they join is what was measured
	for i := range bad {
		at[i] = home(&bad[i])
	}
	var rest []digest.Row
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
	return append(out, bundles(rest, free)...)
}

// alike is whether a row has the variables of another, as far as it knows of
// those that servers tell of themselves.
func alike(r, other *digest.Row, free func(string) bool) bool {
	described := func(name string) bool { return environment(name) && name != "target" }
	for _, f := range r.Fields {
		if !f.Value.Independent || free(f.Name) {
			continue
		}
		v, ok := other.Get(f.Name)
		switch {
		case !ok && !described(f.Name):
			return false
		case ok && settingText(f) != settingText(digest.Field{Name: f.Name, Value: v}) && !f.Value.Equal(v):
			return false
		}
	}
	for _, f := range other.Fields {
		if f.Value.Independent && !free(f.Name) && !described(f.Name) {
			if _, ok := r.Get(f.Name); !ok {
				return false
			}
		}
	}
	return true
}
