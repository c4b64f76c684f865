package reports

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"carronade/internal/judge"
	"carronade/internal/report/export"
	"carronade/protocol"
)

// form is the output format: text, unless a flag is set.
type form struct {
	json, junit bool
}

func (f *form) bind(fs *pflag.FlagSet) {
	fs.BoolVar(&f.json, "json", false, "as JSON")
	fs.BoolVar(&f.junit, "junit", false, "as JUnit XML, for CI: one test case per row")
}

// check rejects more than one format.
func (f *form) check() error {
	if f.json && f.junit {
		return &protocol.Error{Err: errors.New("--json and --junit cannot be combined"), Hint: "give one of them"}
	}
	return nil
}

// comparisonSuites converts a comparison to test cases: a suite per workload, a case per row.
// "Worse" fails and "cannot tell" is skipped; exploratory rows fail only if they make the
// verdict mixed.
func comparisonSuites(c *judge.Comparison) []export.Suite {
	title := "compare " + c.Base.Name + " with " + c.Candidate.Name
	facts := map[string]string{"verdict": c.Verdict}
	leftOut(facts, append(c.Base.LeftOut[:len(c.Base.LeftOut):len(c.Base.LeftOut)], c.Candidate.LeftOut...))
	out := make([]export.Suite, 0, len(c.Pairs)+len(c.Unpaired)+1)
	for i := range c.Pairs {
		p := &c.Pairs[i]
		s := export.Suite{Name: numbered(title+": "+p.Words(), i, len(c.Pairs)), Facts: map[string]string{
			"base": strings.Join(p.Base, " "), "candidate": strings.Join(p.Candidate, " "),
		}}
		maps.Copy(s.Facts, facts)
		for k, f := range p.Findings {
			name := "beware"
			if f.Severe {
				name = "not equal"
			}
			s.Facts[fmt.Sprintf("%s %d", name, k+1)] = f.About + ": " + f.Text
		}
		if p.Survival.Gate == judge.Worse {
			s.Cases = append(s.Cases, export.Case{Name: "runs", Text: p.Survival.Words(), Failed: true})
		}
		for k := range p.Rows {
			r := &p.Rows[k]
			one := export.Case{Name: r.Title, Text: r.Words()}
			switch {
			case r.Primary && r.Verdict == judge.Worse, p.Verdict == judge.Mixed && p.Contradicts(r):
				one.Failed = true
			case p.Contradicts(r):
				one.Skipped = true
			case !r.Primary && r.Verdict == judge.Worse:
				one.Skipped, one.Text = true, "exploratory, does not affect the verdict: "+one.Text
			case r.Verdict == judge.CannotTell:
				one.Skipped = true
			}
			s.Cases = append(s.Cases, one)
		}
		out = append(out, s)
	}
	for i := range c.Unpaired {
		u := &c.Unpaired[i]
		out = append(out, export.Suite{
			Name: numbered(title+": not compared", i, len(c.Unpaired)), Facts: facts,
			Cases: []export.Case{{Name: "compared", Text: u.Words(), Skipped: true}},
		})
	}
	if all := append(c.Base.LeftOut[:len(c.Base.LeftOut):len(c.Base.LeftOut)], c.Candidate.LeftOut...); len(all) > 0 {
		out = append(out, export.Suite{Name: title + ": left out", Facts: facts, Cases: []export.Case{judged(all)}})
	}
	return out
}

// gateSuites converts a verification to test cases: a suite per workload, a case per row, and
// a case for reports that could not be judged, since CI systems do not show properties. A
// suite has a failure exactly when its workload fails the gate.
func gateSuites(v *judge.Verification, strict bool) []export.Suite {
	facts := map[string]string{"verdict": v.Verdict}
	if v.Asked != "" {
		facts["filters"] = v.Asked
	}
	leftOut(facts, v.LeftOut)
	out := make([]export.Suite, 0, len(v.Groups))
	for i := range v.Groups {
		g := &v.Groups[i]
		newest := &g.Revisions[len(g.Revisions)-1]
		s := export.Suite{Name: numbered("verify: "+g.Words(), i, len(v.Groups)), Facts: map[string]string{
			"newest": newest.Short(), "newest reports": strings.Join(slices.Concat(newest.Reports, newest.LeftOut), " "), "revisions before it": fmt.Sprint(len(g.Revisions) - 1),
		}}
		maps.Copy(s.Facts, facts)
		failed := false
		add := func(one export.Case, gate string) {
			switch {
			case gate == judge.NotWorse:
			case gate == judge.Worse && g.Verdict == judge.Worse:
				one.Failed, one.Skipped, failed = true, false, true
			case strict:
				one.Failed, one.Skipped = true, false
			default: // also a regression that was not confirmed
				one.Skipped = true
			}
			s.Cases = append(s.Cases, one)
		}
		all := judged(g.LeftOut)
		all.Text = strings.TrimSuffix(g.Survival.Words()+"; "+all.Text, "; ")
		add(all, g.Survival.Gate)
		for k := range g.Rows {
			add(export.Case{Name: g.Rows[k].Title, Text: g.Rows[k].Words()}, g.Rows[k].Gate)
		}
		if g.Behind != nil {
			s.Cases = append(s.Cases, export.Case{Name: "newest revision", Text: g.BehindWords(), Skipped: true})
		}
		if c := g.Confirmed; c != nil {
			s.Cases = append(s.Cases, export.Case{Name: "confirmed", Text: c.Words(), Failed: !failed && g.Verdict == judge.Worse})
		}
		out = append(out, s)
	}
	for i := range v.Missing {
		out = append(out, export.Suite{
			Name: numbered("verify: not run again", i, len(v.Missing)), Facts: facts,
			Cases: []export.Case{{Name: "run again", Text: v.Missing[i].Words(), Failed: strict, Skipped: !strict}},
		})
	}
	return out
}

// judged is the test case for all reports being judged; it is skipped if some were not.
func judged(out []judge.LeftOut) export.Case {
	const most = 20
	var parts []string
	for i, l := range out {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d others", len(out)-most))
			break
		}
		parts = append(parts, "left out "+l.ID+": "+l.Why)
	}
	return export.Case{Name: "reports judged", Text: strings.Join(parts, "; "), Skipped: len(out) > 0}
}

// leftOut adds the reports that were not judged to the properties.
func leftOut(facts map[string]string, all []judge.LeftOut) {
	for _, l := range all {
		facts["left out "+l.ID] = l.Why
	}
}
