package find

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"carronade/measure"
	"carronade/units"
)

// tried is the outcome as it stands in an answer.
func (o *Outcome) tried() Tried {
	return Tried{Trial: o.Trial, Report: o.ReportID, Achieved: o.Achieved, Elapsed: o.Elapsed, Times: o.Times, Trust: o.Trust}
}

// Again answers other limits from the outcomes of trials that were run already, judged with the
// limits of the options. It asks for no trial, so the answer may be wide, or open at an end. Its
// reason then says what was not measured.
func (o *Options) Again(history []Outcome) *Answer {
	s := search{Options: o, history: history}
	s.answer.Wanted, s.answer.Trials = o.Precision, []Tried{}
	for i := range history {
		s.best = max(s.best, history[i].Achieved)
		s.elapsed += history[i].Elapsed
	}
	var ok bool
	if s.timing, ok = s.plan(max(s.best, 1e-9)); !ok {
		s.timing = s.timingFor(max(s.best, 1e-9), o.Precision)
	}
	at := map[float64][]Outcome{}
	var rates []float64
	for i := range history {
		one := history[i]
		tried := one.tried()
		if one.Trial.Role != Probe && one.Trial.Role != WarmUp {
			one.Trial.Relax = s.relax
			v := s.Judge(one)
			tried.Verdict = &v
			if one.Trial.Role == Again {
				s.answer.AfterOverload = &v
			} else {
				if len(at[one.Trial.Rate]) == 0 {
					rates = append(rates, one.Trial.Rate)
				}
				at[one.Trial.Rate] = append(at[one.Trial.Rate], one)
				s.note(one.Trial.Rate, nil, v, false) // notes a verdict that changed
			}
		}
		s.answer.Trials = append(s.answer.Trials, tried)
		if role := one.Trial.Role; one.Unclear != "" && (role == Search || role == Confirm) && s.answer.Ending == "" {
			s.answer.Ending, s.answer.Why = Irregular, one.Unclear
		}
	}
	slices.Sort(rates)
	for _, rate := range rates {
		v, confirmed := s.together(at[rate])
		p := s.find(rate)
		p.outcomes, p.verdict, p.confirmed = at[rate], v, confirmed
	}
	s.conclude()
	if s.answer.Ending == "" {
		s.endAgain()
	}
	return &s.answer
}

// together judges all trials of a rate. They confirm it if they are as long as a confirmation
// for these limits. Shorter ones than a search would make cannot show that a rate holds.
func (s *search) together(outcomes []Outcome) (v Verdict, confirmed bool) {
	if i := slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Dead != "" }); i >= 0 {
		return Verdict{Result: Fail, Why: outcomes[i].Dead}, false
	}
	long := slices.DeleteFunc(slices.Clone(outcomes), func(o Outcome) bool { return o.Generator != "" || o.Trust == measure.NotTrusted })
	if len(long) == 0 {
		return s.Judge(outcomes...), false
	}
	var length time.Duration
	for i := range long {
		if long[i].Trial.Role != Beyond { // it did not settle
			length += long[i].Trial.Measure
		}
	}
	sure := slices.Clone(long)
	sure[0].Trial.Role = Confirm
	if v = s.Judge(sure...); (v.Result == Pass || v.Result == Fail) && (length >= s.confirm || v.Growing) {
		return v, true
	}
	sure[0].Trial.Role = Search
	v = s.Judge(sure...)
	switch {
	case v.Result == Pass && length == 0:
		v.Result, v.Why = Undecided, "its trials did not settle"
	case v.Result == Pass && length < s.timing.search:
		v.Result, v.Why = Undecided, fmt.Sprintf("%s of trials are too short for these limits, which take %s",
			units.FormatDuration(length), units.FormatDuration(s.timing.search.Round(100*time.Millisecond)))
	}
	return v, false
}

// openWords say what trials that confirm nothing say of a rate.
var openWords = map[Result]string{Fail: "fails in a short trial", Undecided: "is undecided", Invalid: "says nothing of the system"}

// endAgain says how far the trials decide the limits.
func (s *search) endAgain() {
	a := &s.answer
	narrow := a.Fails > 0 && a.Fails/max(a.Holds, 1e-9) <= 1+1.5*s.precision
	var open []string // rates between the ends
	points := slices.SortedFunc(slices.Values(s.points), func(a, b point) int { return cmp.Compare(a.rate, b.rate) })
	for i := range points {
		p := &points[i]
		if p.rate > a.Holds && (a.Fails == 0 || p.rate < a.Fails) && p.verdict.Result != Pass {
			open = append(open, units.FormatRate(p.rate)+" "+openWords[p.verdict.Result]+": "+p.verdict.Why)
		}
	}
	between := strings.Join(open, ", ")
	contradicting := s.contradicting()
	switch {
	case a.Holds > 0 && contradicting != nil:
		a.Ending, a.Why = Irregular, s.contradiction(contradicting)
	case a.Holds > 0 && narrow && a.HoldsConfirmed && a.FailsConfirmed:
		a.Ending, a.Why = Found, s.find(a.Fails).verdict.Why
	case len(s.points) == 0:
		a.Ending, a.Why = Stopped, "no trial had a rate"
	case a.Holds == 0 && a.Fails == 0:
		a.Ending, a.Why = Stopped, "no trial decides these limits: "+between
	case a.Holds == 0 && between != "":
		a.Ending, a.Why = Stopped, "no trial below "+units.FormatRate(a.Fails)+" decides these limits: "+between
	case a.Holds == 0:
		a.Ending, a.Why = Stopped, "nothing below "+units.FormatRate(a.Fails)+" was measured"
	case a.Fails == 0 && between != "":
		a.Ending, a.Why = Stopped, between
	case a.Fails == 0:
		a.Ending, a.Why = NoTop, "nothing above "+units.FormatRate(a.Holds)+" was measured"
	case between != "":
		a.Ending, a.Why = Stopped, "between "+units.FormatRate(a.Holds)+" and "+units.FormatRate(a.Fails)+": "+between
	case narrow:
		a.Ending, a.Why = Stopped, "the trials are too short to confirm these limits"
	default:
		a.Ending, a.Why = Stopped, "nothing between "+units.FormatRate(a.Holds)+" and "+units.FormatRate(a.Fails)+" was measured"
	}
}
