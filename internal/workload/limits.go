package workload

import (
	"fmt"
	"slices"

	"carronade/load"
	"carronade/measure"
)

// Broken says which of the limits that were asked for do not hold, in words
// for people; nil when all do. Drops, failures, unsteadiness and losses are
// results: they break nothing unless somebody set a limit to them. ledger is
// nil when nothing was read back.
func (w *Workload) Broken(r *load.Result, ledger *measure.Ledger) []string {
	var out []string
	broken := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch r.Stopped {
	case load.ByFailures:
		broken("more than %s events failed (--failures)", w.String("failures"))
	case load.ByFailureRate:
		broken("more than %s of the answered events failed (--failure-rate)", w.String("failure-rate"))
	}
	c := r.Hold.Counts
	if w.Has("max-dropped") && c.Dropped > w.Count("max-dropped") {
		broken("%d events were dropped, %s are allowed (--max-dropped)", c.Dropped, w.String("max-dropped"))
	}
	if w.Has("max-unsent") && c.Unsent > w.Count("max-unsent") {
		broken("%d events were due and never sent, %s are allowed (--max-unsent)", c.Unsent, w.String("max-unsent"))
	}
	if r.Missing > 0 {
		broken("%d events are missing of the %s asked for (--count)", r.Missing, w.String("count"))
	}
	if slices.Contains(w.values["require"].texts, "steady") {
		switch {
		case !r.Steady.Known:
			broken("the run was too short to tell whether it was steady (--require steady)")
		case !r.Steady.OK:
			broken("the run was not steady (--require steady)")
		}
	}
	if w.Verify() && ledger != nil {
		for _, v := range []struct {
			n    uint64
			word string
		}{{ledger.Lost, "lost"}, {ledger.Duplicated, "duplicated"}, {ledger.Reordered, "reordered"}, {ledger.Corrupted, "corrupted"}} {
			if v.n > 0 {
				broken("%d events were %s (--verify)", v.n, v.word)
			}
		}
		if !ledger.Complete {
			broken("not everything could be read back (--verify)")
		}
	}
	return out
}
