package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"carronade/internal/host"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// A Band is what each page says first: the answer in a word, why, and three to five numbers.
type Band struct {
	Word  string `json:"word"`
	Mark  string `json:"mark"` // the name of a Mark
	Text  string `json:"text"`
	Facts []Fact `json:"facts"`
	// Notes are what is unusual, the most important first. There are More of them.
	Notes []Note `json:"notes,omitempty"`
	More  int    `json:"more,omitempty"`
}

// A Fact is a number of a band.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Note  string `json:"note,omitempty"` // its limit, or what it is of
	Mark  string `json:"mark,omitempty"` // of its limit; "": it has none
}

// A Note is one verdict of a band.
type Note struct {
	Mark  string `json:"mark"`
	Label string `json:"label"`
	Text  string `json:"text"`
}

// The bounds of a band: of its numbers, and of what is unusual.
const (
	MostFacts = 5
	MostNotes = 3
)

// Name is the name of a mark in files and style sheets.
func (m Mark) Name() string {
	return [...]string{Remark: "remark", Good: "good", Open: "open", Caution: "caution", Bad: "bad"}[m]
}

// Band is the band of a report. The answer is that of Answer.
func (d *Document) Band() Band {
	a := d.Answer()
	b := Band{Word: a.Word, Mark: a.Mark.Name(), Text: cmp.Or(a.Text, d.Headline())}
	var notes []Verdict
	switch {
	case d.Search != nil:
		b.Facts, notes = d.Search.facts(), d.Verdicts()
	case d.Scenario != nil:
		b.Facts, notes = d.scenarioFacts(), d.Verdicts()
	default:
		first, last := d.firstPage()
		b.Facts, notes = d.facts(), append(first, last...)
	}
	for _, v := range notes {
		switch {
		case v.Mark == Good || strings.Join(v.Sentences(), "; ") == b.Text: // the answer says it
		case len(b.Notes) == MostNotes:
			b.More++
		default:
			b.Notes = append(b.Notes, Note{v.Mark.Name(), v.Label, strings.Join(v.Sentences(), "; ")})
		}
	}
	b.Facts = b.Facts[:min(len(b.Facts), MostFacts)]
	return b
}

// facts are the numbers of a run.
func (d *Document) facts() []Fact {
	t, times, step := &d.Totals, &d.Times, ""
	rate := Fact{Name: t.RateOf, Value: units.FormatRate(t.EventsPerS), Note: units.FormatSize(int64(t.BytesPerS)) + "/s"}
	if target := d.targetRate(); d.Mode == load.OpenLoop && target > 0 {
		rate.Note = units.FormatPercent(t.EventsPerS/target) + " of " + units.FormatRate(target)
	}
	if len(d.Steps) > 0 {
		var best int
		rate, best = d.stepsFact()
		times, step = &d.Steps[best].Times, d.Steps[best].Name
	}
	out := []Fact{rate}
	if f := d.timeFact(times, step); f.Value != "" {
		out = append(out, f)
	}
	if d.Mode != load.Consuming {
		out = append(out, d.failureFact())
	}
	if l := d.Ledger; l != nil {
		f := Fact{Name: "delivery check", Value: units.FormatCountShort(l.Lost) + " lost", Mark: Good.Name(), Note: "each once and in order"}
		if short := d.ledgerHeadline(); len(short) > 0 {
			f.Note, f.Mark = strings.Join(short, ", "), ""
		}
		if l.Lost > 0 {
			f.Mark = Bad.Name()
		}
		out = append(out, f)
	}
	return append(out, d.trustFact())
}

// stepsFact is the highest step that holds the limits, or the one with the most events, and its index.
func (d *Document) stepsFact() (Fact, int) {
	n, known := d.heldSteps()
	of := "of " + units.Plural(len(d.Steps), "step")
	if known {
		f := Fact{Name: "limits hold up to", Value: "no step", Note: of}
		if n > 0 {
			f.Value = units.FormatRate(d.Steps[n-1].Rate)
		}
		return f, max(n-1, 0)
	}
	best := 0
	for i := range d.Steps {
		if d.Steps[i].Totals.EventsPerS > d.Steps[best].Totals.EventsPerS {
			best = i
		}
	}
	return Fact{Name: "most " + d.Totals.RateOf, Value: units.FormatRate(d.Steps[best].Totals.EventsPerS), Note: of}, best
}

// timeFact is the limited percentile of the main time with its limit, or p99, in the measurement or in a step.
func (d *Document) timeFact(times *Times, step string) Fact {
	main := times.MainTime()
	if main.Sum.IsEmpty() {
		return Fact{}
	}
	for _, l := range d.LimitLines() {
		text, ok := d.known(&main, step, l.Percentile)
		if v, is := main.Sum.Largest(); is && l.Percentile == 100 {
			text, ok = Percentile(v), true
		}
		if ok && l.Time == main.Name {
			return Fact{Name: main.Title + " " + measure.PercentileName(l.Percentile), Value: text, Note: "limit " + l.bound(), Mark: l.Mark}
		}
	}
	f := Fact{Name: main.Title + " p99"}
	f.Value, _ = d.known(&main, step, 99)
	if v, ok := main.Sum.Largest(); ok {
		f.Note = "max " + Percentile(v)
	}
	return f
}

// failureFact counts the events that the system did not take.
func (d *Document) failureFact() Fact {
	f := Fact{Name: "failures and losses", Value: "0", Note: "of " + units.Plural(max(d.Totals.Offered, d.Totals.Sent), "event"), Mark: Good.Name()}
	n := uint64(0)
	for _, r := range d.Counts() {
		switch r.Name {
		case "unknown":
			if d.Totals.RateOf != RateSent {
				n += uint64(r.Value)
			}
		case "failed", "dropped", "unsent", "missing", "unread":
			n += uint64(r.Value)
		}
	}
	if bad := d.notTaken(); len(bad) > 0 {
		f.Value, f.Note, f.Mark = units.FormatCountShort(n), strings.Join(bad, ", "), Bad.Name()
	}
	return f
}

// trustFact says whether the generator was the limit.
func (d *Document) trustFact() Fact {
	f := Fact{Name: "measurement", Value: string(d.TrustLevel())}
	switch d.TrustLevel() {
	case measure.Trusted:
		f.Mark, f.Note = Good.Name(), "the generator kept up"
	case measure.Noisy:
		f.Mark, f.Note = Caution.Name(), "this machine added to times"
	default:
		f.Mark, f.Note = Bad.Name(), "this machine was the limit"
	}
	if b := d.Bound(d.MainTime().Name, 99); b != nil && b.Upper > b.Lower {
		f.Note = "p99: up to " + Clock(b.Upper-b.Lower) + " from this machine"
	}
	return f
}

// facts are the numbers of a search.
func (s *Search) facts() []Fact {
	ceiling := Fact{Name: "ceiling", Value: "not known", Note: "confirmed"}
	if !s.HoldsConfirmed || !s.FailsConfirmed {
		ceiling.Note = "not confirmed"
	}
	switch {
	case s.Holds > 0 && s.Fails > 0:
		ceiling.Value = strings.TrimSuffix(units.FormatRate(s.Holds), "/s") + " to " + units.FormatRate(s.Fails)
	case s.Holds > 0:
		ceiling.Value = "at least " + units.FormatRate(s.Holds)
	case s.Fails > 0:
		ceiling.Value = "below " + units.FormatRate(s.Fails)
	}
	out := []Fact{ceiling}
	if s.AtLeast > 0 {
		f := Fact{Name: "asked for", Value: units.FormatRate(s.AtLeast), Note: "holds", Mark: Good.Name()}
		switch s.ExitCode() {
		case host.ExitOK:
		case host.ExitBroken:
			f.Note, f.Mark = "does not hold", Bad.Name()
		default:
			f.Note, f.Mark = cannotTell, Open.Name()
		}
		out = append(out, f)
	}
	curve := s.Curve()
	for _, l := range s.Within {
		for i := range slices.Backward(curve) {
			c := &curve[i]
			if q, ok := c.At(l.Of, l.P); ok && c.Rate <= s.Holds {
				out = append(out, Fact{
					Name:  strings.ReplaceAll(l.Of, "_", " ") + " " + measure.PercentileName(l.P) + " at " + units.FormatRate(c.Rate),
					Value: Clock(measure.Micros(q.At)), Note: "limit " + units.FormatDuration(l.Within), Mark: Good.Name(),
				})
				break
			}
		}
	}
	return append(out, Fact{Name: "trials", Value: units.FormatCount(uint64(len(s.Trials))), Note: "in " + units.FormatDuration(s.Elapsed.Round(time.Second))})
}

// scenarioFacts are the numbers of a scenario.
func (d *Document) scenarioFacts() []Fact {
	s := d.Scenario
	well, met := 0, 0
	for i := range s.Steps {
		if s.Steps[i].Exit == host.ExitOK {
			well++
		}
	}
	for i := range s.Checks {
		if s.Checks[i].OK {
			met++
		}
	}
	part := func(name string, n, of int, what string) Fact {
		f := Fact{Name: name, Value: fmt.Sprintf("%d of %d", n, of), Note: what, Mark: Good.Name()}
		if n < of {
			f.Mark = Bad.Name()
		}
		return f
	}
	out := []Fact{part("steps", well, len(s.Steps), "ended well")}
	if len(s.Checks) > 0 {
		out = append(out, part("checks", met, len(s.Checks), "met"))
	}
	return append(out, Fact{Name: "time", Value: seconds(d.EndedAt.Sub(d.StartedAt).Seconds())})
}

// A LimitLine is a limit as a line in a chart.
type LimitLine struct {
	Text string `json:"text"`
	// Time and Percentile say what it limits, if it is a percentile of a time: "response",
	// 99. "max" is percentile 100. For others Time is empty.
	Time       string  `json:"time,omitempty"`
	Percentile float64 `json:"percentile,omitempty"`
	// Name is the name of the result, such as "throughput".
	Name  string  `json:"name"`
	Upper bool    `json:"upper"` // a result must not be above the value
	Value float64 `json:"value"` // in seconds, events/s, ...

	Mark string `json:"-"` // of the check of a report; "": none
}

// bound is the value of a limit on a time.
func (l *LimitLine) bound() string { return units.FormatDuration(units.Seconds(l.Value)) }

// LineOf describes a limit. main is the main time of the run, which a limit without a time is on.
func LineOf(l *workload.Limit, main string) LimitLine {
	out := LimitLine{Text: l.String(), Name: l.Name, Upper: l.Op.Upper(), Value: l.Value}
	switch l.Stat {
	case workload.PercentileStat:
		out.Percentile = l.Percentile
	case workload.MaxStat:
		out.Percentile = 100
	default:
		return out
	}
	out.Time = cmp.Or(l.Time, main)
	return out
}

// LimitLines are the limits of a run, or of a search on the times of its trials, as lines.
func (d *Document) LimitLines() []LimitLine {
	var out []LimitLine
	if d.Search != nil {
		for _, l := range d.Search.Within {
			out = append(out, LimitLine{Text: l.Name, Name: l.Name, Time: l.Of, Percentile: l.P, Upper: true, Value: l.Within.Seconds()})
		}
		return out
	}
	for _, c := range d.Checks {
		if l, err := workload.ParseLimit(c.Name); err == nil && c.Bound != nil { // others are no limits of the user
			line := LineOf(&l, d.MainTime().Name)
			line.Mark = c.verdict().Mark.Name()
			out = append(out, line)
		}
	}
	return out
}
