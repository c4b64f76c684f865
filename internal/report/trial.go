package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"carronade/internal/verdict/find"
	"carronade/internal/workload"
	"carronade/measure"
	"carronade/units"
)

// TimeLimits are the limits that are judged by the share of late events: upper limits of
// percentiles, and of the maximum. The others are judged by the report of each trial.
func TimeLimits(limits []workload.Limit) (times []find.TimeLimit) {
	for i := range limits {
		l := &limits[i]
		if !byShare(l) {
			continue
		}
		q := 1.0
		if l.Stat == workload.PercentileStat {
			q = l.Percentile / 100
		}
		times = append(times, find.TimeLimit{Name: l.String(), Of: l.Time, Within: units.Seconds(l.Value), Quantile: q})
	}
	return times
}

// byShare reports whether a limit is judged by the share of late events.
func byShare(l *workload.Limit) bool {
	return (l.Stat == workload.PercentileStat || l.Stat == workload.MaxStat) && l.Op.Upper() && l.Value > 0
}

// TrialOutcome makes the outcome of a trial from its report. elapsed is the time of the whole trial;
// limits are all limits of the search, checked with the report.
func TrialOutcome(o *find.Options, t find.Trial, d *Document, limits []workload.Limit, elapsed time.Duration) find.Outcome {
	out := find.Outcome{Trial: t, ReportID: d.ID, Achieved: d.Totals.EventsPerS, Elapsed: elapsed}
	if l := d.TrustLevel(); l != measure.Trusted {
		out.Trust = l
	}
	out.Others, out.OthersMost = others(d)
	if s := d.System; s != nil && s.Died {
		out.Dead = "the system ended"
	}
	if t.Role == find.Probe {
		noMetric(&out, d, limits)
		switch {
		case out.Achieved > 0:
		case len(d.Failures) > 0:
			out.Broken = "every event failed: " + d.Failures[0].Class
		default:
			out.Broken = fmt.Sprintf("nothing was answered within %s, since a closed loop fills its batches: begin at a rate with --from, or give --batch-events", units.FormatDuration(t.Measure.Round(100*time.Millisecond)))
		}
		return out
	}
	if o.Reading {
		if out.Unclear = tooLittle(d); out.Unclear != "" {
			return out
		}
	}
	out.Slots, out.Slowest, out.Times, out.Uses = slots(o, t, d), d.slowest(), quantiles(o, t, d), uses(d)
	p50, _ := d.Service.At(50)
	out.Service = p50.D
	out.Generator = sentLess(d)
	switch {
	case strings.HasPrefix(d.Target, "null:"):
		out.Doubt = "null:// takes every event"
	case d.TrustLevel() == measure.NotTrusted && len(d.Trust.Reasons) > 0:
		out.Doubt = d.mainReason()
	}
	checkTrial(&out, d, limits)
	return out
}

// noMetric notes that a limit is on a metric that is not reported, which the first trial shows.
func noMetric(o *find.Outcome, d *Document, limits []workload.Limit) {
	for i, c := range d.CheckLimits(limits) {
		if limits[i].Metric != "" && c.CannotTell && !c.ByGenerator() {
			o.Unclear = c.Name + ": " + c.Text
		}
	}
}

// tooLittle says why a trial that read says nothing of the system.
func tooLittle(d *Document) string {
	switch {
	case d.Totals.Consumed == 0:
		return "nothing was read: a group goes on where the last trial ended, so leave it out, and write events first"
	case d.Totals.ElapsedS < find.ShortestRead.Seconds():
		return fmt.Sprintf("%s events were read in %s, which says little: write more events first", units.FormatCount(d.Totals.Consumed), units.FormatDuration(units.Seconds(d.Totals.ElapsedS)))
	}
	return ""
}

// eachSlot calls f with the intervals of the measurement, the slot of each, and how many of its
// events were lost. Answers after the end of the measurement belong to its last slot.
func eachSlot(t find.Trial, d *Document, f func(i int, iv *Interval, lost uint64)) {
	begin, begun := 0.0, false
	for k := range d.Intervals {
		iv := &d.Intervals[k]
		if iv.Phase != measure.Measurement {
			continue
		}
		if !begun {
			begin, begun = iv.StartS, true
		}
		i := min(max(0, int((iv.StartS-begin)/t.Slot.Seconds()+0.5)), slotsOf(t)-1)
		f(i, iv, iv.Failed+iv.Unknown+iv.Dropped+iv.Unsent)
	}
}

// slotsOf is the number of slots of a trial.
func slotsOf(t find.Trial) int { return max(1, int(t.Measure/t.Slot)) }

// slots counts late events by the intervals of the series.
func slots(o *find.Options, t find.Trial, d *Document) []find.Slot {
	slots := make([]find.Slot, slotsOf(t))
	over := make([]uint64, len(slots)*len(o.Times))
	for i := range slots {
		slots[i].Over = over[i*len(o.Times) : (i+1)*len(o.Times)]
	}
	begin, begun := 0.0, false
	waiting := int64(0)
	read := make([]int64, len(d.Groups)) // by group
	readers := uint64(max(1, len(d.Groups)))
	due, gone := int64(0), int64(0)
	eachSlot(t, d, func(i int, iv *Interval, lost uint64) {
		if !begun {
			begin, begun = iv.StartS, true
		}
		s := &slots[i]
		s.Events += iv.Offered
		done := iv.Acked + lost
		if d.Op == workload.RoundTrip || d.Op == workload.Pipeline {
			done = iv.Consumed + lost
		}
		waiting += int64(iv.Offered) - int64(done)
		if due, gone = due+int64(iv.Offered), gone+int64(lost); len(read) > 0 { // that of the group which has read least
			for g := range read[:min(len(read), len(iv.Groups))] {
				read[g] += int64(iv.Groups[g].Consumed)
			}
			waiting = due - gone - slices.Min(read)
		}
		// What waits at the end of the measurement, and not at that of the drain, is a backlog.
		if iv.StartS-begin < (t.Measure - t.Slot/2).Seconds() {
			s.Waiting = uint64(max(0, waiting))
		}
		for j, l := range o.Times {
			over := lostOf(timeOf(l, d), iv, lost) + longer(iv.Histogram(timeOf(l, d)), l.Within)
			if timeOf(l, d) == "end_to_end" { // an event counts once for each group
				over = (over + readers - 1) / readers
			}
			s.Over[j] += over
		}
	})
	return slots
}

// lostOf is how many events of an interval have no value of a time: those that were lost, and of end-to-end times
// those that were not read.
func lostOf(time string, iv *Interval, lost uint64) uint64 {
	if time == "end_to_end" {
		lost += iv.Unread
	}
	return lost
}

// longer is the number of values of a histogram above a time.
func longer(h *measure.Histogram, than time.Duration) (n uint64) {
	if h == nil {
		return 0
	}
	h.EachBucket(func(top time.Duration, k uint64) {
		if top > than {
			n += k
		}
	})
	return n
}

// withoutGenerator says that by the lower values of the times no event was late for limit j.
func withoutGenerator(slots []find.Slot, j int) {
	for i := range slots {
		if slots[i].OverLeast == nil {
			slots[i].OverLeast = slices.Clone(slots[i].Over)
		}
		slots[i].OverLeast[j] = 0
	}
}

// sentLess says why a trial says nothing of the system: the generator sent less than was due.
func sentLess(d *Document) string {
	if d.TrustLevel() != measure.NotTrusted || d.Totals.Offered == 0 {
		return ""
	}
	const enough = 0.99
	if float64(d.Totals.Sent) >= enough*float64(d.Totals.Offered) {
		return ""
	}
	if len(d.Trust.Reasons) > 0 {
		return d.mainReason()
	}
	return "the generator did not send what was due"
}

// checkTrial checks the limits that are not judged by shares, and notes which of the others hold
// without what the generator may have added. Without a limit on failures, none is allowed.
func checkTrial(o *find.Outcome, d *Document, limits []workload.Limit) {
	var failures, drops bool // allowed
	times := 0
	for i, c := range d.CheckLimits(limits) {
		l := &limits[i]
		failures = failures || l.Value > 0 && (l.Name == "failure-rate" || l.Name == "failed")
		drops = drops || l.Value > 0 && l.Name == "dropped"
		text := c.Name + ": " + c.Text
		switch {
		case byShare(l):
			if c.ByGenerator() {
				withoutGenerator(o.Slots, times)
			}
			times++
		case c.OK:
		case !c.CannotTell:
			o.Broken = text
			return
		case c.ByGenerator():
			o.Generator = text
		default:
			o.Unclear = text
		}
	}
	var bad uint64
	if !failures {
		bad += d.Totals.Failed
	}
	if !drops {
		bad += d.Totals.Dropped
	}
	if bad > 0 {
		o.Broken = fmt.Sprintf("%s of %s events failed", units.FormatCount(bad), units.FormatCount(d.Totals.Offered))
		if len(d.Failures) > 0 {
			o.Broken += ": " + d.Failures[0].Class
		}
	}
}
