package judge

import (
	"fmt"
	"slices"

	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/units"
)

// Survival counts the runs of two sides that ended with a report that can be
// judged. The others have no usable numbers, but must be counted: without its
// failed runs, a side looks better than it is.
type Survival struct {
	Base      Outcomes `json:"base"`
	Candidate Outcomes `json:"candidate"`
	Gate      string   `json:"gate"` // of the candidate: not worse, cannot tell, worse
	Reason    string   `json:"reason,omitempty"`
}

// Outcomes count how runs ended.
type Outcomes struct {
	Runs   int `json:"runs"`   // without those that a user ended or that are still running
	Judged int `json:"judged"` // of Runs
	Died   int `json:"died"`   // of Runs: they ended because the system under test did
}

// outcomesOf counts how runs ended.
func outcomesOf(rows []store.Row, untrusted bool) Outcomes {
	return Outcomes{
		Runs:   count(rows, func(r *store.Row) bool { return !aborted(r) }),
		Judged: count(rows, func(r *store.Row) bool { return unfit(r, untrusted) == "" }),
		Died:   count(rows, died),
	}
}

// survival compares the outcomes of a candidate's runs with those of its base.
// of and before name the two sides in the text: "of the newest revision",
// "before it".
func survival(base, candidate []store.Row, untrusted bool, of, before string) Survival {
	s := Survival{Base: outcomesOf(base, untrusted), Candidate: outcomesOf(candidate, untrusted), Gate: NotWorse}
	b, c := &s.Base, &s.Candidate
	why := ""
	for i := range candidate {
		if text := unfit(&candidate[i], untrusted); text != "" {
			why = candidate[i].ID + " is " + text
			break
		}
	}
	deaths := fmt.Sprintf("the system died in %d of %s %s", c.Died, runsWord(c.Runs), of)
	switch {
	case c.Died > 0 && b.Runs == 0:
		s.Gate, s.Reason = CannotTell, deaths+", and there is nothing "+before
	case c.Died > 0 && b.Died == 0:
		s.Gate, s.Reason = Worse, fmt.Sprintf("%s, and in none of %d %s", deaths, b.Runs, before)
	case c.Died > 0:
		s.Gate, s.Reason = CannotTell, fmt.Sprintf("%s, and in %d of %d %s", deaths, b.Died, b.Runs, before)
		if stats.MoreOften(b.Died, b.Runs, c.Died, c.Runs) <= newAlpha {
			s.Gate = Worse
		}
	case c.Judged == 0 && len(candidate) == 1:
		s.Gate, s.Reason = CannotTell, fmt.Sprintf("the only report %s cannot be judged: %s", of, why)
	case c.Judged == 0:
		s.Gate, s.Reason = CannotTell, fmt.Sprintf("none of %s %s can be judged: %s", units.Plural(len(candidate), "report"), of, why)
	case c.Runs-c.Judged > c.Judged:
		s.Gate, s.Reason = CannotTell, fmt.Sprintf("only %d of %s %s can be judged: %s", c.Judged, units.Plural(c.Runs, "report"), of, why)
	}
	return s
}

func runsWord(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// Words describe the outcomes of the candidate's runs.
func (s *Survival) Words() string {
	if s.Reason != "" {
		return s.Reason
	}
	if s.Candidate.Judged < s.Candidate.Runs {
		return fmt.Sprintf("%d of %d can be judged", s.Candidate.Judged, s.Candidate.Runs)
	}
	return fmt.Sprintf("all %d can be judged", s.Candidate.Runs)
}

// findings are what failed runs say against comparing the others.
func (s *Survival) findings() []Finding {
	var out []Finding
	if s.Reason != "" {
		out = append(out, Finding{true, "runs", s.Reason})
	}
	if s.Candidate.Died == 0 && s.Base.Died > 0 {
		out = append(out, Finding{true, "runs", fmt.Sprintf("the system died in %d of %s of the base", s.Base.Died, runsWord(s.Base.Runs))})
	}
	return out
}

// countDeaths withdraws a verdict that favours a side whose system died in some
// runs: it is based only on the runs that the system survived.
func (j *Judgement) countDeaths(s *Survival) {
	withdraw := func(f Outcomes, whose string, at ...stats.Verdict) {
		if f.Died > 0 && slices.Contains(at, j.Verdict) {
			j.Verdict, j.Why = stats.Unknown, fmt.Sprintf("the system died in %d of %s of the %s", f.Died, runsWord(f.Runs), whose)
		}
	}
	withdraw(s.Candidate, "candidate", stats.Better, stats.Same)
	withdraw(s.Base, "base", stats.Worse, stats.Same)
}
