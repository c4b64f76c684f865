package report

import (
	"fmt"
	"slices"
	"strings"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/verdict/trust"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// neverRead says that events of a run that also reads were not read; "" if all were.
func (d *Document) neverRead() string {
	t := &d.Totals
	if t.Unread == 0 {
		return ""
	}
	all := t.Acked
	if t.RateOf == RateSent {
		all = t.Sent
	}
	return units.FormatCount(t.Unread) + " of " + units.Plural(all, "event") + " " + verb(t.Unread, "was", "were") + " never read"
}

// mostlyFailed says that most events failed, and why; "" if they did not.
func (d *Document) mostlyFailed() string {
	t := &d.Totals
	bad := d.notAccepted()
	short := d.Stopped == load.Interrupted && t.ElapsedS < trust.LeastMeasurement.Seconds() // before an answer could come
	if t.Sent == 0 || 2*bad <= t.Sent || short {
		return ""
	}
	text := units.FormatCount(bad) + " of " + units.Plural(t.Sent, "event") + " were not accepted"
	if why := d.mainFailure(); why != "" {
		text += ": " + why
	}
	return text
}

// muchFailed is the share of failed events from which a run without limits says how to make it fail.
const muchFailed = 0.1

// noLimit says which limit makes a run fail whose events failed or were not read, or that had an outage, and whose exit
// code is 0 because it has no limit on that; "" for others. A search decides what its trials must hold, and a load
// on topics fails if anything failed.
func (d *Document) noLimit() string {
	if d.ExitCode() != host.ExitOK || d.Labels[SearchLabel] != "" || d.OnTopics() {
		return ""
	}
	limit, on, names := "--slo steady", "outages", []string{"steady", "outage", "longest-stall"}
	switch bad := d.notAccepted(); {
	case bad > 0 && float64(bad) >= muchFailed*float64(d.Totals.Sent):
		limit, on, names = "--slo 'failure-rate<1%'", "failures", []string{"failure-rate", "failed", "unknown", "target-share", "not-found"}
	case float64(d.Totals.Unread) >= muchFailed*float64(d.Totals.Sent) && d.Totals.Unread > 0:
		limit, on, names = "--slo unread=0", "unread events", []string{"unread"}
	case d.Steady.Outage == "":
		return ""
	}
	if slices.ContainsFunc(d.Checks, func(c Check) bool {
		name, _, _ := strings.Cut(c.Name, " ")
		return slices.Contains(names, name)
	}) {
		return "" // the user has decided what is too much
	}
	why := "no limit was set"
	if len(d.Checks) > 0 {
		why = "no limit is on " + on
	}
	return "0: " + why + "; " + limit + " makes it 1"
}

// notAccepted is how many events the system did not accept, of those that it should have.
func (d *Document) notAccepted() uint64 {
	if d.Totals.RateOf == RateAcked {
		return d.Totals.Failed + d.Totals.Unknown
	}
	return d.Totals.Failed
}

// mainFailure is the class of most failures, with a message if there is one.
func (d *Document) mainFailure() string {
	class := ""
	for _, c := range sortedKeys(d.Classes) {
		if class == "" || d.Classes[c] > d.Classes[class] {
			class = c
		}
	}
	if class == "" {
		return ""
	}
	i := slices.IndexFunc(d.Failures, func(f measure.Failure) bool { return f.Class == class })
	if i < 0 {
		return class
	}
	return class + " (" + layout.Cut(d.Failures[i].Text, 120) + ")"
}

// Bounds of when a response time is back to what it was before an outage.
const (
	backFactor = 2    // of the median p99 of the intervals before it
	backLeast  = 1e-3 // seconds; smaller differences do not matter
)

// outageText says what the longest outage cost: how long it was, what became of the events sent
// in it, and when the response time was back; "" if the report has no time of it.
func (d *Document) outageText() string {
	s := &d.Steady
	if s.OutageLength <= 0 {
		return ""
	}
	end := s.OutageAt + s.OutageLength
	var c measure.Counts
	var before []float64
	back, known := 0.0, false
	for i := range d.Intervals {
		iv := &d.Intervals[i]
		p99, ok := iv.p99()
		switch {
		case iv.EndS <= s.OutageAt+1e-6:
			if ok && iv.Phase == measure.Measurement {
				before = append(before, p99)
			}
		case iv.StartS < end-1e-6:
			c.Add(iv.Counts)
			c.Unsent += iv.Offered - min(iv.Sent+iv.Dropped+iv.Unsent, iv.Offered) // counted in the last interval
		case ok && !known && len(before) > 0 && p99 <= max(backFactor*trust.Median(before), trust.Median(before)+backLeast):
			back, known = iv.StartS, true
		}
	}
	c.Unsent = min(c.Unsent, d.Totals.Unsent)
	parts := []string{fmt.Sprintf("it began at %s and lasted %s", seconds(s.OutageAt), seconds(s.OutageLength))}
	var cost []string
	for _, n := range []struct {
		n    uint64
		what string
	}{{c.Failed, "failed"}, {c.Unknown, "without an answer"}, {c.Dropped, "dropped"}, {c.Unsent, "unsent"}} {
		if n.n > 0 {
			cost = append(cost, units.FormatCount(n.n)+" "+n.what)
		}
	}
	if len(cost) > 0 {
		parts = append(parts, "in it "+strings.Join(cost, ", "))
	}
	switch {
	case known:
		parts = append(parts, fmt.Sprintf("p99 was back at %s, %s after its end (before it %s)", seconds(back), seconds(max(back-end, 0)), seconds(trust.Median(before))))
	case len(before) > 0:
		parts = append(parts, fmt.Sprintf("p99 was not back to its value before (%s) when the run ended", seconds(trust.Median(before))))
	}
	return strings.Join(parts, "; ")
}

// p99 is p99 of the response time, or else of the service time, in seconds.
func (iv *Interval) p99() (float64, bool) {
	for _, s := range []*measure.Summary{iv.Response, iv.Service} {
		if v, ok := s.At(99); ok && s.Count > 0 {
			return v.D.Seconds(), true
		}
	}
	return 0, false
}
