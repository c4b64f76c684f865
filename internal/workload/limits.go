package workload

import (
	"fmt"
	"slices"

	"carronade/load"
)

// A Check is one limit, and whether it holds.
type Check struct {
	Name string // of the setting, such as "max-dropped"
	OK   bool
	Text string // found and allowed
}

// Checks checks only the limits that were set: without a limit, drops, failures, unsteadiness
// and losses have no effect. (The report checks --count and --verify, since it knows their
// results.)
func (w *Workload) Checks(r *load.Result) []Check {
	var out []Check
	check := func(name string, ok bool, format string, args ...any) {
		out = append(out, Check{name, ok, fmt.Sprintf(format, args...)})
	}
	c := r.Measurement.Counts
	atMost := func(name, word string, n uint64) {
		if w.Has(name) {
			check(name, n <= w.Count(name), "%d events were %s, %s allowed", n, word, w.String(name))
		}
	}
	// A run also ends early by events that are unknown: then the text counts them.
	early := func(why load.Reason) bool { return r.Stopped == why && c.Unknown > 0 }
	if w.Has("failures") && early(load.ByFailures) {
		check("failures", false, "%d events failed and %d have no certain answer, %s allowed", c.Failed, c.Unknown, w.String("failures"))
	} else if w.Has("failures") {
		check("failures", r.Stopped != load.ByFailures && c.Failed <= w.Count("failures"),
			"%d events failed, %s allowed", c.Failed, w.String("failures"))
	}
	if w.Has("failure-rate") {
		share := 0.0
		if n := c.Acked + c.Failed; n > 0 {
			share = float64(c.Failed) / float64(n)
		}
		if early(load.ByFailureRate) {
			n := c.Acked + c.Failed + c.Unknown
			check("failure-rate", false, "%.3g%% of %d events failed or have no certain answer, %s allowed",
				100*float64(c.Failed+c.Unknown)/float64(n), n, w.String("failure-rate"))
		} else {
			check("failure-rate", r.Stopped != load.ByFailureRate && share <= w.share("failure-rate"),
				"%.3g%% of the answered events failed, %s allowed", 100*share, w.String("failure-rate"))
		}
	}
	atMost("max-dropped", "dropped", c.Dropped)
	atMost("max-unsent", "due and never sent", c.Unsent)
	if slices.Contains(w.values["require"].texts, "steady") {
		text := "in flight and response time did not climb, and there was no outage"
		switch {
		case !r.Steady.Known:
			text = "the run was too short to tell whether it was steady"
		case !r.Steady.OK:
			text = "the run was not steady: " + r.Steady.Text
		}
		check("require", r.Steady.Known && r.Steady.OK, "%s", text)
	}
	return out
}
