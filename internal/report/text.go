package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// Text writes the report for people: what came of it first, what was done
// next, then every number. It fits 80 columns and has no ANSI unless the style
// says so. The error is that of w.
func (d *Document) Text(w io.Writer, style layout.Style) error {
	p := &layout.Page{Style: style}
	d.head(p)
	d.workload(p)
	d.events(p)
	d.steps(p)
	d.times(p)
	d.series(p)
	d.course(p)
	d.gauges(p)
	d.answers(p)
	d.failures(p)
	d.ledger(p)
	d.logs(p)
	d.indexedText(p)
	d.system(p)
	d.underTest(p)
	d.clients(p)
	d.generator(p)
	return p.To(w)
}

// head is the answer: what was reached, and whether to believe it.
func (d *Document) head(p *layout.Page) {
	title := d.Op + " " + d.Target
	for i, l := range layout.Wrap(title, layout.Columns) {
		if i == 0 && d.Repetitions > 1 {
			l += fmt.Sprintf("  (%d of %d)", d.Repetition, d.Repetitions)
		}
		p.Line(p.Paint(layout.Bold, l))
	}
	p.Line("")
	for _, l := range layout.Wrap(d.Verdict(), layout.Columns-2) {
		p.Line("  " + l)
	}
	p.Line("")

	if c, dead := d.Dead(); dead {
		p.Pair(layout.Red, "BROKEN", c.Name+": "+c.Text)
	}
	if d.Steady.Outage != "" {
		p.Pair(layout.Yellow, "not steady", d.Steady.Text)
	}
	if d.Partial {
		p.Pair(layout.Yellow, "partial", "the run was cut short after "+seconds(d.Totals.ElapsedS)+" of the hold ("+ended(d.Stopped)+"); this is what was measured until then")
	} else if text := d.EndedByHand(); text != "" {
		p.Pair("", "ended", text)
	}
	switch d.TrustLevel() {
	case measure.Trusted:
		p.Pair("", "trusted", d.TrustText())
	case measure.Noisy:
		for i, text := range d.TrustTexts() {
			name := ""
			if i == 0 {
				name = "noisy"
			}
			p.Pair(layout.Yellow, name, text)
		}
	default:
		why := "because the generator itself was a limit or its clock failed:"
		switch d.Stopped {
		case load.BySystem:
			why = "because the system under test did not last:"
		case load.Killed:
			why = "because the program did not last:"
		}
		p.Pair(layout.Red, "NOT TRUSTED", "could not be trusted, "+why)
		for _, r := range d.Trust.Reasons {
			p.Pair("", "", "- "+r)
		}
	}
	if text := d.Freezes.Text(); text != "" {
		p.Pair("", "froze", text)
	}
	for _, n := range d.Trust.Notes {
		p.Pair("", "note", n)
	}
	if text := d.GeneratesText(); text != "" {
		p.Pair("", "generates", text)
	}
	switch {
	case d.Steady.Text == "" || d.Steady.Outage != "":
	case !d.Steady.Known:
		p.Pair("", "steady?", d.Steady.Text)
	case d.Steady.OK:
		p.Pair("", "steady", d.Steady.Text)
	default:
		p.Pair(layout.Yellow, "not steady", d.Steady.Text)
	}
	for _, c := range d.Limits() {
		switch {
		case c.OK:
			p.Pair("", "holds", c.Name+": "+c.Text)
		case c.CannotTell:
			p.Pair(layout.Yellow, c.Name, c.Text)
		default:
			p.Pair(layout.Red, "BROKEN", c.Name+": "+c.Text)
		}
	}
	for _, s := range d.Problems {
		p.Pair(layout.Red, "problem", s)
	}
	for _, s := range d.Warnings {
		p.Pair(layout.Yellow, "warning", s)
	}
}

// GeneratesText says what this machine makes of the workload by itself, and what
// share of that the run reached; "" where it is not known.
func (d *Document) GeneratesText() string {
	g := d.Generates
	if g == nil || g.EventsPerS <= 0 {
		return ""
	}
	text := "this machine generates " + strings.TrimSuffix(units.FormatRate(g.EventsPerS), "/s") + " events/s of this workload without a system (null://)"
	return text + "; this run reached " + units.FormatPercent(d.Totals.EventsPerS/g.EventsPerS) + " of it"
}

// EndedByHand says of a run that somebody ended that this was the only end that it
// had; "" of others.
func (d *Document) EndedByHand() string {
	if d.Partial || d.Stopped != load.Interrupted {
		return ""
	}
	return "by an interruption, since no limit was set: nothing is missing"
}

// Verdict is the run in one sentence. Where the system failed, it begins with that.
func (d *Document) Verdict() string {
	if c, dead := d.Dead(); dead {
		what, _, _ := strings.Cut(c.Text, ":")
		return what + ": " + d.reached()
	}
	if d.Steady.Outage != "" {
		return d.Steady.Outage + ": " + d.reached()
	}
	return d.reached()
}

// reached is what came of a run, in numbers.
func (d *Document) reached() string {
	t := d.Totals
	reached := units.FormatRate(t.EventsPerS) + " " + t.RateOf
	if d.Mode == load.OpenLoop && t.ElapsedS > 0 {
		reached += " (" + units.FormatRate(float64(t.Offered)/t.ElapsedS) + " asked)"
	}
	reached += " over " + seconds(t.ElapsedS)
	if n := len(d.Steps); n > 0 {
		best := slices.MaxFunc(d.Steps, func(a, b Phase) int { return cmp.Compare(a.Totals.EventsPerS, b.Totals.EventsPerS) })
		reached = fmt.Sprintf("%d steps over %s, at most %s %s (%s asked)", n, seconds(t.ElapsedS),
			units.FormatRate(best.Totals.EventsPerS), t.RateOf, units.FormatRate(best.Rate))
	}
	parts := []string{reached}
	if len(d.Steps) == 0 {
		parts = append(parts, units.FormatSize(int64(t.BytesPerS))+"/s")
	}
	if len(d.Steps) == 0 { // else each step has its own
		if v, ok := d.Response.At(99); ok {
			parts = append(parts, "response p99 "+Percentile(v))
		} else if v, ok := d.Service.At(99); ok {
			parts = append(parts, "service p99 "+Percentile(v))
		}
		if v, ok := d.EndToEnd.At(99); ok {
			parts = append(parts, "end to end p99 "+Percentile(v))
		}
	}
	var bad []string
	for _, n := range []struct {
		name string
		n    uint64
	}{{"failed", t.Failed}, {"unknown", t.Unknown}, {"dropped", t.Dropped}, {"unsent", t.Unsent}} {
		if n.n > 0 && !(n.name == "unknown" && t.RateOf == RateSent) {
			bad = append(bad, units.FormatCount(n.n)+" "+n.name)
		}
	}
	switch {
	case len(bad) > 0:
		parts = append(parts, bad...)
	case d.Mode != load.Consuming && t.RateOf == RateAcked && t.Offered+t.Sent+t.Acked == 0:
		parts = append(parts, "no event was counted")
	case d.Mode != load.Consuming && t.RateOf == RateAcked:
		parts = append(parts, "nothing failed")
	case t.RateOf == RateSent:
		parts = append(parts, "nothing is acknowledged")
		if n := d.counted(); n != "" {
			parts = append(parts, "the server counted "+n)
		}
	}
	switch l := d.Ledger; {
	case l == nil:
	case t.RateOf == RateSent: // what was not acked cannot be lost, and can be missing
		all := uint64(0)
		for i := range d.Phases {
			all += d.Phases[i].Totals.Unknown
		}
		parts = append(parts, fmt.Sprintf("%s of %s read back", units.FormatCount(l.Recovered), units.FormatCount(all)))
	default:
		parts = append(parts, units.FormatCount(l.Lost)+" lost")
		if l.Unread > 0 {
			parts = append(parts, units.FormatCount(l.Unread)+" unread")
		}
		if l.Phantom > 0 {
			parts = append(parts, units.FormatCount(l.Phantom)+" phantom")
		}
	}
	if x := d.Indexed; x != nil && x.Share != nil {
		parts = append(parts, fmt.Sprintf("%.2f%% indexed", 100**x.Share))
	}
	return strings.Join(parts, ", ")
}

// tidy takes out the blanks that columns need.
func tidy(s string) string { return strings.Join(strings.Fields(s), " ") }

// workload is what was done.
func (d *Document) workload(p *layout.Page) {
	p.Section("Workload")
	var set, usual []string
	for _, s := range d.Settings {
		if s.Minor {
			continue
		}
		if s.Default {
			if s.Value != "" && s.Value != "false" { // what is off goes without saying
				usual = append(usual, s.Name+" "+s.Value)
			}
			continue
		}
		set = append(set, s.Name+" "+s.Value)
	}
	p.Pair("", "load", string(d.Mode))
	if len(set) > 0 {
		p.Pair("", "set", strings.Join(set, ", "))
	}
	if len(usual) > 0 {
		p.Pair("", "by default", strings.Join(usual, ", "))
	}
	if len(d.Labels) > 0 {
		var l []string
		for _, k := range slices.Sorted(maps.Keys(d.Labels)) {
			l = append(l, k+"="+d.Labels[k])
		}
		p.Pair("", "labels", strings.Join(l, ", "))
	}
	if d.Note != "" {
		p.Pair("", "noted", layout.Clean(d.Note))
	}
	if len(d.Attachments) > 0 {
		var l []string
		for _, a := range d.Attachments {
			l = append(l, layout.Clean(a.Name)+" ("+units.FormatSize(int64(len(a.Text)))+")")
		}
		p.Pair("", "attached", strings.Join(l, ", "))
	}
	var spans []string
	for _, ph := range d.Phases {
		if ph.EndS > ph.StartS {
			spans = append(spans, ph.Name+" "+seconds(ph.EndS-ph.StartS))
		}
	}
	when := d.StartedAt.UTC().Format(time.DateTime) + " UTC: " + strings.Join(spans, ", ")
	p.Pair("", "when", when+"; "+ended(d.Stopped))
}

// ended says in words why the hold ended.
func ended(r load.Reason) string {
	words := map[load.Reason]string{
		load.ByTime:        "its time was up",
		load.ByEvents:      "its number of events was reached",
		load.ByBytes:       "its number of bytes was reached",
		load.ByFailures:    "too many events had failed",
		load.ByFailureRate: "too large a share had failed",
		load.BySchedule:    "the schedule ended",
		load.ByFeed:        "nothing more was to come from the run that feeds it",
		load.ByIdle:        "nothing arrived any more",
		load.ByEnd:         "the end of the logs was reached",
		load.Interrupted:   "it was interrupted",
		load.ByTarget:      "the target could not go on",
		load.BySystem:      "the system under test ended by itself",
		load.Killed:        "the program was killed",
	}
	if w, ok := words[r]; ok {
		return w
	}
	return "ended by " + string(r)
}

// events are the counts, in two blocks.
func (d *Document) events(p *layout.Page) {
	t := d.Totals
	p.Section("Events")
	left, right := layout.Table{Least: 9}, layout.Table{Least: 9}
	var remarks []string // of the right block, where there is room
	fact := func(name, value, remark string) {
		right.Row(name, value)
		remarks = append(remarks, remark)
	}
	count := func(indent, name string, n, of uint64) {
		left.Row(indent+name, units.FormatCount(n), share(n, of))
	}
	if d.Mode == load.Consuming {
		left.Row("consumed", units.FormatCount(t.Consumed), "")
		if t.Missing > 0 {
			left.Row("missing", units.FormatCount(t.Missing), "")
		}
		left.Row("rebalancing", seconds(t.RebalanceS), "")
		left.Row("fetching", seconds(t.FetchS), "")
	} else {
		count("", "offered", t.Offered, 0)
		count("", "sent", t.Sent, t.Offered)
		count("  ", "acked", t.Acked, t.Offered)
		count("  ", "failed", t.Failed, t.Offered)
		count("  ", "unknown", t.Unknown, t.Offered)
		count("", "dropped", t.Dropped, t.Offered)
		count("", "unsent", t.Unsent, t.Offered)
		if t.Consumed > 0 || d.EndToEnd != nil {
			count("", "consumed", t.Consumed, t.Offered)
		}
	}
	if n := max(t.Sent, t.Consumed); n > 0 && t.Bytes > 0 {
		fact("bytes", units.FormatSize(int64(t.Bytes)), units.FormatSize(int64(t.Bytes/n))+" an event")
	} else {
		fact("bytes", units.FormatSize(int64(t.Bytes)), "")
	}
	fact("on the wire", units.FormatSize(int64(t.WireBytes)), "")
	if d.Mode != load.Consuming {
		each := ""
		if t.Shots > 0 {
			each = d.aSecond(t.Shots) + ", " + units.FormatCountShort((t.Sent+t.Shots/2)/t.Shots) + " each"
		}
		fact("shots", units.FormatCount(t.Shots), each)
		fact("retries", units.FormatCount(t.Retries), "")
	}
	if d.Mode != load.Consuming && t.RateOf != RateSent { // else nothing is ever in flight, nor answered
		fact("in flight", units.FormatCountShort(uint64(t.InFlightMean+0.5)), "outstanding, mean")
		fact("  most", units.FormatCountShort(t.MostInFlight()), "events")
		if d.Steady.Known {
			fact("  slope", signed(d.Steady.InFlightSlope), "events a second")
		}
		fact("no answer", seconds(d.Stall.LongestS), fmt.Sprintf("at most, at %s", seconds(d.Stall.LongestAtS)))
		fact("stalled", units.FormatPercent(d.Stall.Share), "of the hold")
	}
	l, r := left.Lines(0, p.Style), right.Lines(0, p.Style)
	edge := 34
	for _, line := range l {
		edge = max(edge, layout.Width(line))
	}
	for i := range max(len(l), len(r)) {
		a, b := "", ""
		if i < len(l) {
			a = l[i]
		}
		if i < len(r) {
			b = r[i]
			if remark := remarks[i]; remark != "" && 2+edge+2+layout.Width(b)+2+layout.Width(remark) <= layout.Columns {
				b += "  " + remark
			}
		}
		p.Line("  " + layout.PadRight(a, edge) + "  " + b)
	}
	if len(d.Steps) > 0 {
		p.Note("all steps together; each on its own below")
	}
}
