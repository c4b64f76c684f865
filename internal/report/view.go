package report

import (
	"cmp"
	"fmt"
	"strings"

	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// The view is the content of a report, once: verdicts (here), numbers (view_numbers.go), times
// (times.go), series (view_series.go), and the conditions of the run (view_conditions.go), as
// rows with labels, units and meanings. Text, page, Markdown, CSV, JUnit and the drop-ins lay
// them out.

// A Mark is the kind of a verdict.
type Mark uint8

// The marks, from best to worst.
const (
	Remark  Mark = iota // neutral
	Good                // positive
	Open                // undecided
	Caution             // read before using the numbers
	Bad                 // negative
)

// A Subject is the topic of a verdict.
type Subject uint8

// The subjects.
const (
	OnSystem    Subject = iota // what the system did
	OnEnd                      // how the run ended
	OnOutput                   // what could not be written
	OnTrust                    // whether the generator was the limit
	OnGenerator                // other remarks on the generator
	OnLimit                    // a limit, of the user or of every run
	OnWarning                  // warnings about system and workload
)

// A Verdict is one judgement of a run, in sentences.
type Verdict struct {
	On    Subject
	Mark  Mark
	Label string // in a word or two: "trusted", "not steady"
	Limit string // for a limit: its setting
	Texts []string
}

// Sentences are the texts; those of a limit begin with its name.
func (v *Verdict) Sentences() []string {
	if v.Limit == "" {
		return v.Texts
	}
	out := make([]string, len(v.Texts))
	for i, t := range v.Texts {
		out[i] = v.Limit + ": " + t
	}
	return out
}

// verdict is the verdict on a limit.
func (c *Check) verdict() Verdict {
	v := Verdict{On: OnLimit, Mark: Good, Label: "holds", Limit: c.Name, Texts: []string{c.Reason()}}
	switch {
	case c.CannotTell:
		v.Mark, v.Label = Open, cannotTell
	case !c.OK:
		v.Mark, v.Label = Bad, "BROKEN"
	}
	return v
}

// Verdicts are all verdicts on a run, the most important first.
func (d *Document) Verdicts() []Verdict {
	if d.Search != nil {
		return d.Search.verdicts()
	}
	if d.Scenario != nil {
		return d.scenarioVerdicts()
	}
	var out []Verdict
	say := func(on Subject, mark Mark, label string, texts ...string) {
		if strings.Join(texts, "") != "" {
			out = append(out, Verdict{On: on, Mark: mark, Label: label, Texts: texts})
		}
	}
	limit := func(c *Check) {
		v := c.verdict()
		if v.Mark == Good && c.Name == Verify && !d.flawless() {
			v.Mark, v.Label = Remark, "checked"
		}
		out = append(out, v)
	}
	// First comes what explains most: the system, if it failed, before the generator.
	c, dead := d.Dead()
	if dead {
		limit(&c)
	}
	limits := d.Limits()
	for i := range limits {
		if c := &limits[i]; c.Name == Verify && !c.OK {
			limit(c)
		}
	}
	if text := d.neverRead(); text != "" {
		say(OnSystem, Bad, "UNREAD", text+": in the end-to-end times they count at the age that they had reached")
	}
	out = append(out, d.missing()...)
	if d.Steady.Outage != "" {
		say(OnSystem, Caution, "not steady", d.Steady.Text)
	}
	switch {
	case dead:
	case d.Steady.Outage != "":
		say(OnSystem, Caution, "outage", d.outageText())
	default:
		say(OnSystem, Caution, "failed", d.mostlyFailed())
	}
	switch {
	case d.Partial:
		say(OnEnd, Caution, "partial", d.ending())
	case d.Stopped == load.ByLimit:
		say(OnEnd, Caution, "ended", d.ending())
	case d.Stopped == load.Interrupted:
		say(OnEnd, Remark, "ended", d.ending())
	}
	say(OnEnd, Remark, "exit code", d.noLimit())
	for _, s := range d.Problems {
		say(OnOutput, Bad, "problem", s)
	}
	switch d.TrustLevel() {
	case measure.Trusted:
		say(OnTrust, Good, "trusted", "the generator kept up")
	case measure.Noisy:
		say(OnTrust, Caution, "noisy", d.Trust.Doubts...)
	default:
		say(OnTrust, Bad, "NOT TRUSTED", d.Trust.Reasons...)
	}
	say(OnGenerator, Caution, "machine", d.others())
	say(OnGenerator, Remark, "freezes", d.Freezes.Text())
	for _, n := range d.Trust.Notes {
		say(OnGenerator, Remark, "note", n)
	}
	say(OnGenerator, Remark, "generates", d.generatesText())
	say(OnGenerator, Remark, "codec", d.codecText())
	say(OnGenerator, Remark, "not decoded", d.Undecoded)
	switch {
	case d.Steady.Outage != "":
	case !d.Steady.Known:
		say(OnSystem, Open, "steady?", d.Steady.Text)
	case d.Steady.OK:
		say(OnSystem, Good, "steady", d.Steady.Text)
	default:
		say(OnSystem, Caution, "not steady", d.Steady.Text)
	}
	say(OnSystem, Remark, "stalls", d.Stall.Text())
	for i := range limits {
		if c := &limits[i]; c.Name != Verify || c.OK {
			limit(c)
		}
	}
	for _, s := range d.Warnings {
		say(OnWarning, Caution, "warning", s)
	}
	return out
}

// ending says how a run ended that did not take its time; "" for others.
func (d *Document) ending() string {
	switch {
	case d.Partial:
		return "cut short after " + seconds(d.Totals.ElapsedS) + " of the measurement (" + ended(d.Stopped) + "); these are the results until then"
	case d.Stopped == load.ByLimit:
		return "early, after " + seconds(d.Totals.ElapsedS) + " of the measurement, because a limit was broken (--abort-on-fail)"
	case d.Stopped == load.Interrupted:
		return "by an interruption; no limit was set, so nothing is missing"
	}
	return ""
}

// Against returns the negative verdicts in sentences, for formats with little space: output
// that could not be written, why the generator is not trusted or how noisy it was, and broken
// limits.
func (d *Document) Against() []string {
	var out []string
	for _, v := range d.Verdicts() {
		before := ""
		switch {
		case v.Mark <= Good:
			continue
		case v.On == OnTrust && v.Mark == Bad:
			before, v.Texts = "not to be trusted: ", d.distrust(v.Texts)
		case v.On == OnTrust:
			before = v.Label + ": "
		case v.On != OnOutput && v.On != OnLimit:
			continue
		case v.Mark == Open:
			before = v.Label + ": "
		}
		for _, s := range v.Sentences() {
			out = append(out, before+s)
		}
	}
	return out
}

// generatesText compares the run with what this machine generates of the
// workload without a system; "" if unknown.
func (d *Document) generatesText() string {
	g := d.Generates
	if g == nil || g.EventsPerS <= 0 {
		return ""
	}
	return "this machine generates " + strings.TrimSuffix(units.FormatRate(g.EventsPerS), "/s") + " events/s of this workload without a system (null://); this run reached " +
		units.FormatPercent(d.Totals.EventsPerS/g.EventsPerS) + " of it"
}

// encodedText says when the bytes of events were made; "" if unknown.
func (d *Document) encodedText() string {
	e := d.Encoding
	switch {
	case e == nil:
		return ""
	case e.Events == measure.Fresh:
		return "fresh: each was encoded as it was sent"
	case e.Events != measure.Pooled: // of a later program
		return e.Events
	}
	text := "pooled: encoded before the run, and sent again and again"
	if e.Distinct > 0 {
		text = "pooled: " + units.FormatCount(e.Distinct) + " different ones were encoded before the run, and repeat"
	}
	if e.Except != "" {
		text += " except for their " + e.Except
	}
	return text
}

// codecText says what share of the codec's work was part of the run; "" without a codec.
func (d *Document) codecText() string {
	e := d.Encoding
	if e == nil || e.Codec == "" || e.CodecMeasured == nil {
		return ""
	}
	of := " of the work of " + e.Codec + " was measured: "
	switch share := *e.CodecMeasured; {
	case share <= 0:
		return "0%" + of + "the events were compressed before the run"
	case share >= 1:
		return "100%" + of + "the events were compressed as they were sent"
	default:
		return units.FormatPercent(share) + of + "the other events were compressed before the run"
	}
}

// Headline is the result in one sentence. If the system failed, it begins with that, else
// with the notice.
func (d *Document) Headline() string {
	if d.Search != nil {
		return d.Search.headline()
	}
	if d.Scenario != nil {
		return d.scenarioHeadline()
	}
	before := d.Steady.Outage
	if c, dead := d.Dead(); dead {
		before, _, _ = strings.Cut(c.Text, ":")
	}
	if before = cmp.Or(before, d.Notice); before != "" {
		before += ": "
	}
	return before + strings.Join(d.results(), ", ")
}

// results are the numbers of the headline.
func (d *Document) results() []string {
	t := &d.Totals
	var parts []string
	if len(d.Steps) > 0 {
		parts = append(parts, d.stepsHeadline()...)
	} else {
		rate := units.FormatRate(t.EventsPerS)
		if d.Mode == load.OpenLoop && t.ElapsedS > 0 {
			rate += " of " + units.FormatRate(d.targetRate())
		}
		rate += " " + t.RateOf
		if d.Mode == load.OpenLoop && d.Stopped == load.ByEvents && t.EventsPerS > fasterThanDue*d.targetRate() {
			rate += fmt.Sprintf(" (%s within %s)", units.Plural(t.Acked, "event"), seconds(t.ElapsedS))
		}
		parts = append(parts, rate, units.FormatSize(int64(t.BytesPerS))+"/s")
		if name, value := d.mainP99(); value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	bad := d.notTaken()
	switch {
	case len(bad) > 0 || d.Mode == load.Consuming:
	case t.RateOf == RateAcked && t.Offered+t.Sent+t.Acked == 0:
		bad = append(bad, "no event was counted")
	case t.RateOf == RateAcked:
		bad = append(bad, "no failures")
	case t.RateOf == RateSent:
		bad = append(bad, "nothing is acknowledged")
		if n := d.serverCounts(); n != "" {
			bad = append(bad, "the server counted "+n)
		}
	}
	parts = append(parts, bad...)
	if n := d.Stall.Count; n > 0 {
		parts = append(parts, units.Plural(n, "stall"))
	}
	if d.Ledger != nil {
		parts = append(parts, d.ledgerHeadline()...)
	}
	if text := d.Backlog.headline(); text != "" {
		parts = append(parts, text)
	}
	if x := d.Indexed; x != nil && x.Share != nil {
		parts = append(parts, fmt.Sprintf("%.2f%% indexed", 100**x.Share))
		if text := d.refusedText(); text != "" {
			parts = append(parts, text)
		}
	}
	return parts
}

// mainP99 is the p99 of the main time, by its name; empty texts if nothing was timed.
func (d *Document) mainP99() (name, value string) {
	main := d.MainTime()
	text, ok := d.rangeOf(&main, "", 99)
	if !ok {
		return "", ""
	}
	name = main.Title + " p99"
	return name, strings.TrimPrefix(text, name+" ")
}

// notTaken are the numbers of events that the system did not take, each with what became of them.
func (d *Document) notTaken() []string {
	var bad []string
	for _, r := range d.Counts() {
		switch r.Name {
		case "failed", "unknown", "dropped", "unsent", "missing":
			if r.Value > 0 && !(r.Name == "unknown" && d.Totals.RateOf == RateSent) {
				bad = append(bad, r.Text()+" "+r.Label)
			}
		case "unread":
			if text := d.neverRead(); text != "" {
				bad = append(bad, text)
			}
		}
	}
	return bad
}

// fasterThanDue is how many times the target rate a rate must be for the report to say how it came about: the last of
// a number of events is due before the time that all of them take, or all are due together.
const fasterThanDue = 1.05

// targetRate is the rate that the run should reach in the measurement.
func (d *Document) targetRate() float64 {
	for i := range d.Phases {
		if ph := &d.Phases[i]; ph.Name == measure.Measurement && ph.Rate > 0 {
			return ph.Rate
		}
	}
	return float64(d.Totals.Offered) / d.Totals.ElapsedS // of a run that was killed
}

// stepsHeadline is the answer of a run with steps: the highest step that holds the limits, or
// without limits the one with the most events, and p99 there.
func (d *Document) stepsHeadline() []string {
	n, known := d.heldSteps()
	best := max(n-1, 0)
	var parts []string
	switch {
	case known && n == 0 && d.Steps[0].Undecided:
		parts = append(parts, units.FormatRate(d.Steps[0].Rate)+": cannot tell whether it holds the limits")
	case known && n == 0:
		parts = append(parts, "not even "+units.FormatRate(d.Steps[0].Rate)+" holds the limits")
	case known && n < len(d.Steps) && d.Steps[n].Undecided:
		parts = append(parts, units.FormatRate(d.Steps[best].Rate)+" holds the limits, "+units.FormatRate(d.Steps[n].Rate)+": cannot tell")
	case known && n < len(d.Steps):
		parts = append(parts, units.FormatRate(d.Steps[best].Rate)+" holds the limits, "+units.FormatRate(d.Steps[n].Rate)+" does not")
	case known:
		parts = append(parts, "all "+units.Plural(n, "step")+" hold the limits, up to "+units.FormatRate(d.Steps[best].Rate))
	default:
		for i := range d.Steps {
			if d.Steps[i].Totals.EventsPerS > d.Steps[best].Totals.EventsPerS {
				best = i
			}
		}
		parts = append(parts, units.Plural(len(d.Steps), "step"))
	}
	s := &d.Steps[best]
	at := fmt.Sprintf("%s of %s %s", units.FormatRate(s.Totals.EventsPerS), units.FormatRate(s.Rate), d.Totals.RateOf)
	if !known {
		at = "at most " + at
	}
	parts = append(parts, at)
	main := s.MainTime()
	if text, ok := d.rangeOf(&main, s.Name, 99); ok {
		parts = append(parts, text+" there")
	}
	return parts
}

// Text describes the number and length of stalls; "" if there were none.
func (s *Stall) Text() string {
	if s.Share <= 0 && s.Count == 0 {
		return ""
	}
	text := units.FormatPercent(s.Share) + " of the measurement; longest " + s.longest()
	if s.Count > 0 {
		text = units.FormatCount(s.Count) + ", " + text
	}
	return text
}

func (s *Stall) longest() string { return seconds(s.LongestS) + " (at " + seconds(s.LongestAtS) + ")" }

// Each returns the stalls, only the longest if there were very many. An older report has just
// the longest one.
func (s *Stall) Each() []Span {
	if s.Spans == nil && s.LongestS >= load.StallAfter.Seconds() {
		return []Span{{AtS: s.LongestAtS, LengthS: s.LongestS}}
	}
	return s.Spans
}

func stall(s *measure.Stall) Stall {
	out := Stall{LongestS: s.Longest.Seconds(), LongestAtS: s.LongestAt.Seconds(), Share: s.Share, Count: s.Count, Spans: []Span{}}
	for _, x := range s.Spans {
		out.Spans = append(out.Spans, Span{AtS: x.At.Seconds(), LengthS: x.Length.Seconds()})
	}
	return out
}
