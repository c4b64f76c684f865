package find

import (
	"fmt"
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
	switch a.Ending {
	case Found:
		return fmt.Sprintf("ceiling %s to %s (%s); limited by: %s; %s", rateText(a.Holds), units.FormatRate(a.Fails), limits, a.Why, trials)
	case AtLeast:
		return fmt.Sprintf("at least %s (%s): %s; %s", units.FormatRate(a.Holds), limits, a.Why, trials)
	case Highest:
		return fmt.Sprintf("holds at %s (%s): %s; %s", units.FormatRate(a.Holds), limits, a.Why, trials)
	case None:
		return fmt.Sprintf("no ceiling (%s): %s; %s", limits, a.Why, trials)
	case Died:
		return fmt.Sprintf("the system died: %s; %s; %s", a.Why, a.known(), trials)
	}
	return fmt.Sprintf("no confirmed ceiling (%s): %s; %s; %s", limits, a.Why, a.known(), trials)
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
	case a.Holds > 0 && a.Fails > 0:
		return of(a.Holds, a.HoldsConfirmed, "holds") + ", " + of(a.Fails, a.FailsConfirmed, "fails")
	case a.Holds > 0:
		return of(a.Holds, a.HoldsConfirmed, "holds")
	case a.Fails > 0:
		return of(a.Fails, a.FailsConfirmed, "fails")
	}
	return "no rate is known to hold or to fail"
}

// rateText is a rate without its unit.
func rateText(rate float64) string { return strings.TrimSuffix(units.FormatRate(rate), "/s") }

// Text writes the answer with its trials.
func (a *Answer) Text(p *layout.Page, limits string) {
	for _, line := range layout.Wrap(a.Headline(limits), p.Columns()) {
		p.Line(line)
	}
	if len(a.Trials) == 0 {
		return
	}
	switch {
	case a.Knee == nil && (a.Ending == Found || len(a.Inversions) > 0 || a.Soak != nil), a.Knee != nil && a.Knee.Scalability != nil:
		p.Section("what is known")
	}
	switch {
	case a.Knee != nil:
		if u := a.Knee.Scalability; u != nil {
			p.Pair("", "scalability", scalability(u))
		}
	case a.Ending == Found && a.Precision > a.Wanted*1.05:
		p.Pair("", "precision", fmt.Sprintf("%s, %s was asked for: the budget did not suffice for more", units.FormatPercent(a.Precision), units.FormatPercent(a.Wanted)))
	case a.Ending == Found:
		p.Pair("", "precision", units.FormatPercent(a.Precision))
	}
	for i := range a.Trials {
		t := &a.Trials[i]
		if t.Role == Typical {
			p.Pair("", "at 80 %", fmt.Sprintf("%s: %s", units.FormatRate(t.Rate), reportText(t)))
		}
		if t.Role == Beyond {
			p.Pair("", "beyond it", fmt.Sprintf("%s: %s answered, %s", units.FormatRate(t.Rate), units.FormatRate(t.Achieved), reportText(t)))
		}
	}
	if v := a.AfterOverload; v != nil {
		p.Pair("", "after it", fmt.Sprintf("%s: %s, %s", units.FormatRate(a.Holds), v.Result, v.Why))
	}
	if a.Soak != nil {
		p.Pair("", "for long", a.Soak.text())
	}
	for _, text := range a.Inversions {
		p.Pair("", "inversion", text)
	}
	p.Section("trials")
	t := &layout.Table{Headings: 1, Left: []int{5}, Elastic: []int{5}, Keep: []int{20}}
	t.Row("role", "rate", "answered", "for", "report", "verdict")
	for i := range a.Trials {
		one := &a.Trials[i]
		load, verdict := units.FormatRate(one.Rate), "not judged"
		if one.Concurrency > 0 {
			load = fmt.Sprintf("%d in flight", one.Concurrency)
		}
		if one.Verdict != nil {
			verdict = string(one.Verdict.Result) + ": " + one.Verdict.Why
		}
		t.Row(string(one.Role), load, units.FormatRate(one.Achieved), units.FormatDuration(one.Measure.Round(100*time.Millisecond)), one.Report, verdict)
	}
	p.Table(t)
}

func reportText(t *Tried) string {
	if t.Verdict == nil {
		return "report " + t.Report
	}
	return t.Verdict.Why + ", report " + t.Report
}
