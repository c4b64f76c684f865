package find

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"carronade/internal/layout"
	"carronade/units"
)

// Headline is the answer in a line.
func (a *Answer) Headline(limits string) string {
	trials := ""
	if k := a.Soak; k != nil && k.Result != Pass {
		trials = k.text() + "; "
	}
	trials += fmt.Sprintf("%s in %s", units.Plural(len(a.Trials), "trial"), units.FormatDuration(a.Elapsed.Round(time.Second)))
	if a.Knee != nil && a.Ending != Died {
		return a.Knee.headline(a.Ending, a.Why, trials)
	}
	limits = conditions(limits)
	switch a.Ending {
	case Found:
		if a.reading() {
			return fmt.Sprintf("reading %s%s; %s; %s", rangeText(a.Holds, a.Fails), limits, a.Why, trials)
		}
		return fmt.Sprintf("ceiling %s%s; limited by: %s; %s", rangeText(a.Holds, a.Fails), limits, a.Why, trials)
	case AtLeast:
		if a.Holds == 0 {
			return fmt.Sprintf("no rate is known to hold%s: %s; %s", limits, a.Why, trials)
		}
		return fmt.Sprintf("at least %s%s: %s; %s", units.FormatRate(a.Holds), limits, a.Why, trials)
	case Highest:
		return fmt.Sprintf("holds at %s%s: %s; %s", units.FormatRate(a.Holds), limits, a.Why, trials)
	case None:
		return fmt.Sprintf("no ceiling%s: %s; %s", limits, a.Why, trials)
	case Died:
		return fmt.Sprintf("the system died: %s; %s; %s", a.Why, a.known(), trials)
	}
	if len(a.Trials) == 0 {
		return fmt.Sprintf("no confirmed ceiling%s: %s", limits, a.Why)
	}
	return fmt.Sprintf("no confirmed ceiling%s: %s; %s; %s", limits, a.Why, a.known(), trials)
}

// conditions are the limits in brackets.
func conditions(limits string) string {
	if limits == "" {
		return ""
	}
	return " (" + limits + ")"
}

// reading reports whether the ceiling is that of readers.
func (a *Answer) reading() bool {
	return slices.ContainsFunc(a.Trials, func(t Tried) bool { return t.Role == Read })
}

// known says what is known of a ceiling that was not confirmed.
func (a *Answer) known() string {
	of := func(rate float64, confirmed bool, what string) string {
		if !confirmed {
			what += " in a short trial"
		}
		return units.FormatRate(rate) + " " + what
	}
	switch {
	case a.Holds > 0 && a.reading():
		return rangeText(a.Holds, a.Fails) + " so far"
	case a.Holds > 0 && a.Fails > 0:
		return of(a.Holds, a.HoldsConfirmed, "holds") + ", " + of(a.Fails, a.FailsConfirmed, "fails")
	case a.Holds > 0:
		return of(a.Holds, a.HoldsConfirmed, "holds")
	case a.Fails > 0:
		return of(a.Fails, a.FailsConfirmed, "fails")
	}
	return "no rate is known to hold or to fail"
}

// rangeText is an interval of rates. Its unit is written once if both ends have the same.
func rangeText(lo, hi float64) string {
	const number = "0123456789."
	a, b := units.FormatRate(lo), units.FormatRate(hi)
	if short := strings.TrimRight(a, " kMG/s"); strings.TrimLeft(a, number) == strings.TrimLeft(b, number) {
		a = short
	}
	return a + " to " + b
}

// A Remark is something that is known in addition to the answer.
type Remark struct {
	Name, Text string
}

// The names of remarks on what makes an answer doubtful: trials that contradict each other, and those
// that the generator may have affected.
const (
	Inversion = "inversion"
	Doubtful  = "trust"
)

// Remarks are what is known in addition to the answer: its width, how the system behaves around it, and
// where trials contradict each other.
func (a *Answer) Remarks() []Remark {
	var out []Remark
	say := func(name, text string) { out = append(out, Remark{name, text}) }
	switch {
	case a.Knee != nil:
		if u := a.Knee.Scalability; u != nil {
			say("scalability", scalability(u))
		}
	case a.Ending == Found && a.Precision > a.Wanted*1.05:
		say("precision", fmt.Sprintf("%s, %s was asked for: the budget did not suffice for more", units.FormatPercent(a.Precision), units.FormatPercent(a.Wanted)))
	case a.Ending == Found:
		say("precision", units.FormatPercent(a.Precision))
	}
	if a.Deciding != nil {
		if text := a.Deciding.text(); text != "" {
			say(Doubtful, text)
		}
	}
	if k := a.CurveKnee(); k != nil {
		say("knee", k.String())
	}
	if a.Bottleneck != nil {
		say("bottleneck", a.Bottleneck.Text())
	}
	for i := range a.Trials {
		t := &a.Trials[i]
		if t.Role == Typical {
			say("at 80 %", fmt.Sprintf("%s: %s", units.FormatRate(t.Rate), reportText(t)))
		}
		if t.Role == Beyond {
			say("beyond it", fmt.Sprintf("%s: %s answered, %s", units.FormatRate(t.Rate), units.FormatRate(t.Achieved), reportText(t)))
		}
	}
	if v := a.AfterOverload; v != nil {
		say("after it", fmt.Sprintf("%s: %s, %s", units.FormatRate(a.Holds), v.Result, v.Why))
	}
	if a.Soak != nil {
		say("for long", a.Soak.text())
	}
	for _, text := range a.Inversions {
		say(Inversion, text)
	}
	return out
}

// Rows are the trials as a table, with its heading.
func (a *Answer) Rows() [][]string {
	out := [][]string{{"role", "rate", "achieved", "for", "report", "verdict"}}
	for i := range a.Trials {
		one := &a.Trials[i]
		load, verdict := one.Load(), "not judged"
		switch {
		case one.Verdict == nil:
		case one.Role == Read && one.Verdict.Result == Pass:
			verdict = "counts"
		default:
			verdict = string(one.Verdict.Result) + ": " + strings.Replace(one.Verdict.Why, " took longer than ", " over ", 1)
		}
		out = append(out, []string{string(one.Role), load, units.FormatRate(one.Achieved), units.FormatDuration(one.Measure.Round(100 * time.Millisecond)), one.Report, verdict})
	}
	return out
}

// Head writes a headline after the word that answers: first what was found, then what limited it and what it cost.
func Head(p *layout.Page, color, word, headline string) {
	found, rest, _ := strings.Cut(headline, "; ")
	p.Answer(color, word, found)
	if rest != "" {
		for _, line := range layout.Wrap(rest, p.Columns()) {
			p.Line(line)
		}
	}
}

// Details writes the remarks and the trials.
func (a *Answer) Details(p *layout.Page) {
	if len(a.Trials) == 0 {
		return
	}
	if remarks := a.Remarks(); len(remarks) > 0 {
		p.Line("")
		for _, r := range remarks {
			p.Pair("", r.Name, r.Text)
		}
	}
	p.Section("Trials")
	t := &layout.Table{Headings: 1, Left: []int{5}, Elastic: []int{5}, Keep: []int{20}, Wrapped: []int{5}}
	for _, row := range a.Rows() {
		t.Row(row...)
	}
	p.Table(t)
}

// Load is the load of a trial in words.
func (t *Trial) Load() string {
	switch {
	case t.Concurrency > 0:
		return fmt.Sprintf("%d in flight", t.Concurrency)
	case t.Rate == 0:
		return "full speed"
	}
	return units.FormatRate(t.Rate)
}

func reportText(t *Tried) string {
	if t.Verdict == nil {
		return "report " + t.Report
	}
	return t.Verdict.Why + ", report " + t.Report
}
