package find

import (
	"fmt"
	"time"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/verdict/stats"
	"carronade/units"
)

// Repeated are the answers of several searches for one ceiling, each from the beginning.
type Repeated struct {
	Searches  []*Answer `json:"searches"`
	LowerEnds LowerEnds `json:"lower_ends"`
}

// LowerEnds summarizes the confirmed lower ends of several searches, in events a second.
type LowerEnds struct {
	N      int     `json:"n"` // searches that confirmed one
	Median float64 `json:"median"`
	Least  float64 `json:"min"`
	Most   float64 `json:"max"`
}

// Repeat summarizes searches.
func Repeat(searches []*Answer) *Repeated {
	r := &Repeated{Searches: searches}
	var ends []float64
	for _, a := range searches {
		if a.HoldsConfirmed {
			ends = append(ends, a.Holds)
		}
	}
	if len(ends) > 0 {
		e := stats.Median(ends, stats.Confidence)
		r.LowerEnds = LowerEnds{N: len(ends), Median: e.Median, Least: e.Min, Most: e.Max}
	}
	return r
}

// ExitCode is the most serious exit code of the searches.
func (r *Repeated) ExitCode(atLeast float64) (code int) {
	for _, a := range r.Searches {
		code = host.WorseExit(code, a.ExitCode(atLeast))
	}
	return code
}

// Headline is the answer in a line.
func (r *Repeated) Headline(limits string) string {
	limits = conditions(limits)
	trials, elapsed := 0, time.Duration(0)
	for _, a := range r.Searches {
		trials, elapsed = trials+len(a.Trials), elapsed+a.Elapsed
	}
	cost := fmt.Sprintf("%s, %s in %s", units.Plural(len(r.Searches), "search"), units.Plural(trials, "trial"), units.FormatDuration(elapsed.Round(time.Second)))
	e := r.LowerEnds
	if e.N == 0 {
		return fmt.Sprintf("no confirmed ceiling%s; %s", limits, cost)
	}
	if r.count(Highest) == len(r.Searches) {
		return fmt.Sprintf("holds at %s%s: it was the highest rate allowed; %s", units.FormatRate(e.Median), limits, cost)
	}
	text := fmt.Sprintf("ceiling from %s, %s%s", units.FormatRate(e.Median), rangeText(e.Least, e.Most), limits)
	if found := r.count(Found); found < len(r.Searches) {
		text += fmt.Sprintf("; %d of %d searches found both ends", found, len(r.Searches))
	}
	return text + "; " + cost
}

func (r *Repeated) count(e Ending) (n int) {
	for _, a := range r.Searches {
		if a.Ending == e {
			n++
		}
	}
	return n
}

// Details writes how far apart the searches are, and each of them with its trials.
func (r *Repeated) Details(p *layout.Page, limits string) {
	if e := r.LowerEnds; e.N > 1 {
		p.Line("")
		p.Pair("", "lower ends", fmt.Sprintf("median %s, from %s: %s apart", units.FormatRate(e.Median), rangeText(e.Least, e.Most), units.FormatPercent(e.Most/e.Least-1)))
	}
	for i, a := range r.Searches {
		p.Section(fmt.Sprintf("Search %d of %d", i+1, len(r.Searches)))
		for _, line := range layout.Wrap(a.Headline(limits), p.Columns()) {
			p.Line(line)
		}
		a.Details(p)
	}
}
