package find

import (
	"fmt"
	"time"

	"carronade/units"
)

// A Progress is what is known while a search goes on.
type Progress struct {
	// Holds and Fails are the ends of the interval so far; 0: none is known.
	Holds, Fails float64
	// Left is the time that the budget leaves.
	Left time.Duration
	// Verdict is that of the last trial, nil if it was not judged.
	Verdict *Verdict
	// Precision is what the budget allows, 0 while the capacity is not known. Needs is the time of
	// a search with the precision that was asked for.
	Precision float64
	Needs     time.Duration
}

// Progress says what is known after some trials.
func (o *Options) Progress(history []Outcome) Progress {
	s := search{Options: o, history: history}
	s.answer.Trials = []Tried{}
	p := Progress{}
	if o.Over == OverConcurrency {
		_ = s.overConcurrency()
	} else {
		_ = s.run() // it ends where the next trial is needed
	}
	p.Left = max(0, o.Budget-s.elapsed)
	if s.answer.Ending != Stopped { // which may be because no plan fits
		p.Precision = s.timing.precision
	}
	if p.Holds, p.Fails = s.bounds(false); o.Reading {
		p.Holds, p.Fails = s.answer.Holds, s.answer.Fails
	}
	switch n := len(s.answer.Trials); {
	case n < len(history): // the soak, which is after the search
		v := o.Judge(history[len(history)-1])
		p.Verdict = &v
	case n > 0:
		p.Verdict = s.answer.Trials[n-1].Verdict
	}
	if p.Precision > o.Precision {
		p.Needs = o.suffices(s.timing.capacity, o.Precision)
	}
	return p
}

// Plan is the plan in a line, "" while there is none.
func (o *Options) Plan(p *Progress) string {
	switch {
	case p.Precision == 0:
		return ""
	case p.Needs > 0:
		return fmt.Sprintf("plan: an answer %s wide, which is what %s allow; %s would take %s", units.FormatPercent(p.Precision),
			units.FlagDuration(o.Budget), units.FormatPercent(o.Precision), budgetText(p.Needs))
	}
	return fmt.Sprintf("plan: an answer %s wide, within %s and %d trials", units.FormatPercent(p.Precision), units.FlagDuration(o.Budget), MostTrials)
}

// Text is the interval so far and the time that is left.
func (p *Progress) Text() string {
	left := "at most " + units.FormatDuration(p.Left.Round(time.Second)) + " left"
	switch {
	case p.Holds > 0 && p.Fails > 0:
		return rangeText(p.Holds, p.Fails) + ", " + left
	case p.Holds > 0:
		return units.FormatRate(p.Holds) + " holds, " + left
	case p.Fails > 0:
		return units.FormatRate(p.Fails) + " fails, " + left
	}
	return left
}
