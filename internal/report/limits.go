package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// CheckLimits checks limits on the results, in order. A limit is broken if the result does not
// meet it even without the delay that the generator may have added. It is undecided if it holds
// only without that delay.
//
// In a run with several steps, a limit that can be checked for each step holds if it holds
// in the first step. The report then says in which step it holds last.
func (d *Document) CheckLimits(limits []workload.Limit) []Check {
	out := make([]Check, 0, len(limits))
	for i := range limits {
		l := &limits[i]
		if len(d.Steps) > 0 && perStep(l) {
			out = append(out, d.checkSteps(l))
			continue
		}
		f := d.checkGroups(l, d.check(l, &d.Totals, &d.Times, 0))
		out = append(out, f.asCheck(l))
	}
	return out
}

// A finding is the outcome of one limit.
type finding struct {
	holds bool
	open  bool     // cannot tell
	own   bool     // cannot tell because of the generator
	value *float64 // in the unit of the limit's kind
	text  string   // the result, and why it does not decide
}

func (f *finding) asCheck(l *workload.Limit) Check {
	c := Check{Name: l.String(), OK: f.holds, CannotTell: f.open, generator: f.own, Text: f.text, Found: f.value}
	if l.Kind != workload.VerdictKind {
		c.Bound = &l.Value
	}
	return c
}

func undecided(format string, args ...any) finding {
	return finding{open: true, text: cannotTell + ": " + fmt.Sprintf(format, args...)}
}

// perStep reports whether a limit is on a result that each step has.
func perStep(l *workload.Limit) bool {
	return l.Stat != workload.NoStat || l.Result != nil && l.Result.PerStep()
}

// checkSteps checks a limit on each step.
func (d *Document) checkSteps(l *workload.Limit) Check {
	var all []finding
	for i := range d.Steps {
		s := &d.Steps[i]
		all = append(all, d.check(l, &s.Totals, &s.Times, s.Rate))
	}
	failing := slices.IndexFunc(all, func(f finding) bool { return !f.holds }) // the first that does not
	at := func(i int) string { return units.FormatRate(d.Steps[i].Rate) }
	var f finding
	switch {
	case failing < 0:
		f = all[len(all)-1]
		f.text = at(len(all)-1) + ", the last step: " + f.text
		if len(all) == 1 {
			f.text = all[0].text
		}
	case failing == 0:
		f = all[0]
		f.text = at(0) + ", the first step: " + f.text
	default:
		f = all[failing-1]
		f.text = at(failing-1) + ": " + f.text + "; " + at(failing) + ": " + all[failing].text
	}
	return f.asCheck(l)
}

// check checks a limit on the measurement or a step of it. rate is the step's target rate, 0
// for the measurement.
func (d *Document) check(l *workload.Limit, t *Totals, times *Times, rate float64) finding {
	switch {
	case l.Stat != workload.NoStat:
		return d.checkTime(l, times)
	case l.Metric != "":
		return d.checkMetric(l)
	}
	switch l.Name {
	case "outage":
		return d.checkFault(l, d.WorstOutage())
	case "drain":
		if b := d.Backlog; b != nil && b.State != BacklogDrained && b.DrainS != nil {
			return d.blame(b.undrained(l))
		}
	case "recover":
		return d.checkFault(l, d.WorstRecovery())
	case "steady":
		return finding{holds: d.Steady.Known && d.Steady.OK, open: !d.Steady.Known, text: d.Steady.Text}
	case "keeps-up":
		return d.checkBacklog()
	case "longest-stall":
		if d.Mode == load.Consuming && d.Stall.LongestS == 0 && l.Value < load.StallAfter.Seconds() && t.Consumed > 0 {
			return undecided("gaps of up to %s are not known in a run that waited at the end of the logs", seconds(load.StallAfter.Seconds()))
		}
	}
	x, why := d.valueIn(l.Result, t, rate)
	if why != "" {
		return undecided("%s", why)
	}
	f := finding{value: &x, holds: l.Op.Holds(x, l.Value), text: l.Kind.Format(x)}
	if d.Ledger != nil && (l.Needs == workload.NeedsDelivery || l.Needs == workload.NeedsCommits) {
		return d.checkDelivery(l, f)
	}
	if l.Result.Generator {
		return d.blame(f)
	}
	return f
}

// checkFault checks a limit on the scores of faults. One score is enough to break it; it holds only
// if all of them can be said.
func (d *Document) checkFault(l *workload.Limit, w WorstTimes) finding {
	t := w.Longest
	if t == nil {
		return undecided("%s", w.Why)
	}
	f := finding{value: &t.S, holds: l.Op.Holds(t.S, l.Value), text: timeText(t)}
	switch {
	case f.holds && w.Open != nil:
		f.holds, f.open = false, true
		f.text = timeText(w.Open) + ", since it was not over at the end"
	case f.holds && w.Why != "":
		return undecided("%s", w.Why)
	case f.holds && w.Later != nil && (w.Later.More || !l.Op.Holds(w.Later.S, l.Value)):
		return undecided("a blackout of %s began later, and may be of a fault", timeText(w.Later))
	case t.More:
		f.text += ", since it was not over at the end"
	}
	return d.blame(f)
}

// blame marks a broken limit as undecided if the run is not trusted: the generator may be the
// cause of a rate that is too low, of events that were late, and of a reader that was slow.
func (d *Document) blame(f finding) finding {
	if !f.holds && !f.open && d.TrustLevel() == measure.NotTrusted {
		f.open, f.own = true, true
		f.text += ", and the generator may be the cause"
	}
	return f
}

// checkTime checks a limit on a time. What the generator may have added decides nothing.
func (d *Document) checkTime(l *workload.Limit, times *Times) finding {
	name := l.Time
	if name == "" {
		if name = times.MainTime().Name; name == "" {
			return undecided("nothing was answered")
		}
	}
	upper := times.named(name)
	if upper.IsEmpty() {
		return undecided("this run has no %s times", strings.ReplaceAll(name, "_", " "))
	}
	u, ok := statistic(l, upper)
	if !ok {
		return undecided("the report does not have this percentile")
	}
	x := u.D.Seconds()
	f := finding{value: &x, holds: l.Op.Holds(x, l.Value), text: u.Text(units.FormatDuration)}
	if l.Time == "" && l.Name != "" && name != "response" {
		f.text = strings.ReplaceAll(name, "_", " ") + " " + f.text
	}
	if f.holds && u.AtLeast {
		f.holds, f.open = false, true
		f.text += ", because events were never " + lacking(name).verb
		return f
	}
	if f.holds {
		return f
	}
	if lower := times.lowerOf(name); !lower.IsEmpty() {
		if v, ok := statistic(l, lower); ok && v.D < u.D {
			f.open = l.Op.Holds(v.D.Seconds(), l.Value)
			f.own = f.open
			if f.open || measure.LevelOf(v.D, u.D) != measure.Trusted {
				f.text = strings.Replace(f.text, units.FormatDuration(u.D), units.FormatDurations(v.D, u.D), 1) + " (" + d.lengthenedBy() + ")"
			}
		}
	}
	return f
}

// statistic is the limit's statistic of a time.
func statistic(l *workload.Limit, s *measure.Summary) (measure.Value, bool) {
	switch l.Stat {
	case workload.MaxStat:
		return s.Largest()
	case workload.MeanStat:
		return s.Average()
	}
	return s.At(l.Percentile)
}

func micro(us float64) time.Duration { return time.Duration(us * float64(time.Microsecond)) }

// lowerOf is the lower bound of a time, nil if it has none.
func (t *Times) lowerOf(name string) *measure.Summary {
	switch name {
	case "response":
		return t.ResponseLower
	case "service":
		return t.ServiceLower
	case "end_to_end":
		return t.EndToEndLower
	}
	return nil
}

// mostNamed is the largest number of metrics that a message names.
const mostNamed = 8

// checkMetric checks a limit on a metric of the system: an upper limit on its maximum, a lower
// one on its minimum. Of a counter it is the increase.
func (d *Document) checkMetric(l *workload.Limit) finding {
	var names []string
	for i := range d.Gauges {
		g := &d.Gauges[i]
		if g.From != l.From {
			continue
		}
		names = append(names, g.Name)
		if !workload.SameMetric(l.Metric, g.Name) {
			continue
		}
		x, ok := g.worst(l.Op.Upper())
		if !ok {
			return undecided("%s had no value in the measurement", l.Metric)
		}
		return finding{value: &x, holds: l.Op.Holds(x, l.Value), text: gaugeText(x, g.Unit)}
	}
	if len(names) == 0 {
		return undecided("no metrics of the %s were reported", l.From)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > mostNamed {
		names = append(names[:mostNamed], "...")
	}
	return undecided("no metric of the %s has this name; it has %s", l.From, strings.Join(names, ", "))
}

// worst is the value that an upper or a lower limit is compared with.
func (g *Gauge) worst(upper bool) (float64, bool) {
	switch {
	case g.Total:
		if g.Before == nil || g.After == nil {
			return 0, false
		}
		return *g.After - *g.Before, true
	case upper && g.Max != nil:
		return *g.Max, true
	case upper || g.Mean == nil || len(g.Points) == 0:
		return 0, false
	}
	least := g.Points[0].Value
	for _, p := range g.Points {
		least = min(least, p.Value)
	}
	return least, true
}

// checkDelivery checks a limit on the ledger, whose value f has.
func (d *Document) checkDelivery(l *workload.Limit, f finding) finding {
	x := d.Ledger
	switch {
	case slices.Contains(x.Unchecked, l.Result.Field):
		return undecided("what was read back does not show whether events are %s", l.Name)
	case f.holds && x.Unread > 0 && l.Name != "unread" && l.Op.Upper():
		f.holds, f.open = false, true
		f.text += ", but " + units.FormatCount(x.Unread) + " of " + units.FormatCount(x.Acked) + " were not read"
	case !x.Complete && (f.holds && l.Op.Upper() || l.Name == "not-found"):
		f.holds, f.open = false, true
		f.text += ", but the read-back ended early"
	case f.holds && x.Inexact > 0:
		f.text += ", as far as checked: " + units.Plural(x.Inexact, "event") + " could not be checked individually"
	}
	return f
}

// markSteps notes for each step whether it holds the limits, and warns if a step above one that
// does not hold them holds them again.
func (d *Document) markSteps(limits []workload.Limit) {
	limits = slices.DeleteFunc(slices.Clone(limits), func(l workload.Limit) bool { return !perStep(&l) })
	if len(limits) == 0 {
		return
	}
	for i := range d.Steps {
		s := &d.Steps[i]
		ok, open := true, false
		for k := range limits {
			f := d.check(&limits[k], &s.Totals, &s.Times, s.Rate)
			ok = ok && (f.holds || f.open)
			open = open || f.open
		}
		if s.Undecided = ok && open; !s.Undecided {
			s.Holds = &ok
		}
	}
	n, _ := d.heldSteps()
	if n == len(d.Steps) || d.Steps[n].Undecided {
		return
	}
	for _, s := range d.Steps[n+1:] {
		if s.Holds != nil && *s.Holds && s.Rate > d.Steps[n].Rate {
			d.Warnings = append(d.Warnings, fmt.Sprintf("the steps are not monotonic: %s does not hold the limits and %s does; repeat the run with longer steps",
				units.FormatRate(d.Steps[n].Rate), units.FormatRate(s.Rate)))
			return
		}
	}
}

// heldSteps returns how many steps hold the limits, from the first one on; known is false if no limit
// can be checked for steps.
func (d *Document) heldSteps() (n int, known bool) {
	for n < len(d.Steps) && d.Steps[n].Holds != nil && *d.Steps[n].Holds {
		n++
	}
	return n, len(d.Steps) > 0 && (d.Steps[0].Holds != nil || d.Steps[0].Undecided)
}

// Broken reports whether a limit is broken by what was measured in a time. rate is the target
// rate of the step, 0 if there is none. Only results that intervals have can be.
func (s *Series) Broken(l *workload.Limit, iv *measure.Interval, rate float64) bool {
	grows := l.Result != nil && l.Kind != workload.RateKind && l.Kind != workload.ShareKind // until the end
	if !perStep(l) || grows && !l.Op.Upper() {
		return false
	}
	if grows && l.Op == workload.Equal {
		most := *l
		most.Op = workload.AtMost
		l = &most
	}
	b := builder{Series: *s}
	t := measure.Tally{Start: iv.End - iv.Within, End: iv.End, Counts: iv.Counts, Set: iv.Set, Arrived: iv.Acked + iv.InFlight} // what is in flight may be on time
	if s.Mode == load.Consuming {
		t.Arrived = iv.Consumed
	}
	d := &Document{Mode: s.Mode, Totals: b.totals(&t), Times: b.times(&t), Trust: measure.Trust{Level: measure.Trusted, OK: true}}
	d.ResponseLower, d.ServiceLower, d.EndToEndLower = nil, nil, nil // intervals have none
	f := d.check(l, &d.Totals, &d.Times, rate)
	return !f.holds && !f.open
}
