package workload

import (
	"errors"
	"fmt"
	"slices"

	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
)

// A Check is one limit, and whether it holds.
type Check struct {
	Name string // of the setting, such as "failures"
	OK   bool
	Text string // found and allowed
}

// Checks checks the limits that end a run early, as far as they were set. (The report checks
// --slo, --count and --verify, since it has their results.)
func (w *Workload) Checks(r *load.Result) []Check {
	var out []Check
	check := func(name string, ok bool, format string, args ...any) {
		out = append(out, Check{name, ok, fmt.Sprintf(format, args...)})
	}
	c := r.Measurement.Counts
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
	return out
}

// Limits are those of --slo, in order.
func (w *Workload) Limits() []Limit {
	var out []Limit
	for _, text := range w.List("slo") {
		l, err := ParseLimit(text)
		if err != nil {
			panic("workload: slo was not checked: " + err.Error())
		}
		out = append(out, l)
	}
	return out
}

// LimitPercentiles are the percentiles that limits are on.
func (w *Workload) LimitPercentiles() []float64 {
	var out []float64
	for _, l := range w.Limits() {
		if l.Stat == PercentileStat {
			out = append(out, l.Percentile)
		}
	}
	return out
}

// limitsFaults reports whether a limit is on the scores of faults.
func limitsFaults(text string) bool {
	l, err := ParseLimit(text)
	return err == nil && (l.Name == "outage" || l.Name == "recover")
}

// Unacknowledged reports whether nothing that is sent is acknowledged, so that there are no
// response times.
func (w *Workload) Unacknowledged() bool {
	unacknowledged := w.Kind.Capabilities().Unacknowledged
	return unacknowledged != nil && w.Op != Consume && unacknowledged(w.URL, w.options())
}

// Percentiles are those that the report has beyond the standard ones: requested, or with a
// limit. They ascend.
func (w *Workload) Percentiles() []float64 {
	out := parsed(w, "percentiles", parsePercentiles)
	for _, p := range w.LimitPercentiles() {
		if !slices.Contains(measure.StandardPercentiles(), p) && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

func checkSLO(text string) error {
	_, err := ParseLimit(text)
	e, ok := errors.AsType[*protocol.Error](err)
	if !ok {
		return err
	}
	return &protocol.Error{Err: fmt.Errorf("%q: %w", text, e.Err), Hint: e.Hint}
}

// require adds what limits need: those on the delivery turn on --verify. An error comes with
// the name of the setting.
func (w *Workload) require() (name string, err error) {
	for _, l := range w.Limits() {
		switch {
		case l.Needs == NeedsBacklog && !w.Has("backlog"):
			return "slo", &protocol.Error{Err: fmt.Errorf("%q: the run builds no backlog", l.Text), Hint: "add --op roundtrip --backlog SIZE"}
		case w.Op == Consume && (l.Stat != NoStat || slices.Contains([]LimitNeed{NeedsSending, NeedsSchedule, NeedsDelivery, NeedsCommits}, l.Needs)):
			return "slo", &protocol.Error{Err: fmt.Errorf("%q: a run that only reads has no such result", l.Text), Hint: "throughput, longest-stall, outage and keeps-up can be limited; end-to-end times need --op roundtrip"}
		case l.Needs == NeedsSchedule && !w.Has("rate") && !w.Has("shape"):
			hint := "add --rate or --shape"
			if l.Time == "response" {
				hint += ", or limit service." + l.Name[len("response."):]
			}
			return "slo", &protocol.Error{Err: fmt.Errorf("%q: without a schedule nothing is due, so this is not measured", l.Text), Hint: hint}
		case l.Time == "end_to_end" && w.Op != RoundTrip && w.Op != Pipeline:
			return "slo", &protocol.Error{Err: fmt.Errorf("%q: a run that only sends has no end-to-end times", l.Text), Hint: "add --op roundtrip"}
		case (l.Needs == NeedsSystem || l.From == "system") && !w.HasSystem():
			return "slo", &protocol.Error{Err: fmt.Errorf("%q: the system is not watched", l.Text), Hint: "add --system-pid PID, --system-container NAME or --system-cmd CMD"}
		case l.Needs == NeedsIndex && !w.Has("index"):
			return "slo", &protocol.Error{Err: fmt.Errorf("%q: documents behind the system are not counted", l.Text), Hint: "add --index URL, with a target that has this option"}
		case l.Needs == NeedsReading && (w.Op == Produce || w.Op == ReadSingle):
			return "slo", &protocol.Error{Err: fmt.Errorf("%q: a run that only sends does not read", l.Text), Hint: "add --op roundtrip"}
		case (l.Needs == NeedsDelivery || l.Needs == NeedsCommits) && !w.Verify():
			s := find(w.table, "verify")
			if v, ok := w.values["verify"]; s == nil || !s.AppliesTo(w.Op) || ok && v.from > FromPreset ||
				!slices.Contains(w.Kind.Ops(), Consume) && !w.Kind.Capabilities().Verifies {
				return "slo", &protocol.Error{Err: fmt.Errorf("%q: whether events are there is known only if they are read back", l.Text), Hint: "it needs --verify, with a target that can be read back"}
			}
			w.values["verify"] = value{texts: []string{"true"}, from: FromPreset}
		}
	}
	if w.Has("abort-on-fail") && !w.Has("slo") {
		return "abort-on-fail", &protocol.Error{Err: errors.New("ends a run when a limit breaks, but no limit was given"), Hint: "add --slo LIMIT"}
	}
	return "", nil
}
