package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"carronade/internal/layout"
	"carronade/internal/verdict/fault"
)

// fewestFaults is from how many faults on a median says something.
const fewestFaults = 5

// A faultGroup is the scores of the same fault in several runs.
type faultGroup struct {
	name   string
	scores []*fault.Score
}

// FaultSummary prints the scores of the same faults in several runs: each of them, the median and
// the worst. It prints nothing if fewer than two runs have one. The error is that of w.
func FaultSummary(w io.Writer, style layout.Style, runs []*Document) error {
	var groups []faultGroup
	with := 0
	for _, d := range runs {
		if d.Faults == nil || len(d.Faults.Scores) == 0 {
			continue
		}
		with++
		for i := range d.Faults.Scores {
			s := &d.Faults.Scores[i]
			name := markName(&s.Mark)
			at := slices.IndexFunc(groups, func(g faultGroup) bool { return g.name == name })
			if at < 0 {
				at = len(groups)
				groups = append(groups, faultGroup{name: name})
			}
			groups[at].scores = append(groups[at].scores, s)
		}
	}
	if with < 2 {
		return nil
	}
	p := &layout.Page{Style: style}
	p.Section(fmt.Sprintf("Faults of %d runs", with))
	t := layout.Table{Headings: 2, Elastic: []int{0}, Keep: []int{16}}
	t.Row("", "no acks", "worst", "in limit", "caught up")
	t.Row("", "for", "lane", "after", "after")
	few := false
	for i := range groups {
		g := &groups[i]
		few = few || len(g.scores) < fewestFaults
		t.Row(g.name, "", "", "", "")
		for k, s := range g.scores {
			t.Row(append([]string{fmt.Sprintf("  %d", k+1)}, texts(timesOf(s))...)...)
		}
		median, worst := g.middle()
		t.Row(append([]string{"  median"}, texts(median)...)...)
		t.Row(append([]string{"  worst"}, texts(worst)...)...)
	}
	p.Table(&t)
	if few {
		p.Note(fmt.Sprintf("fewer than %d faults of a kind do not support a claim: --repeat 9 makes enough", fewestFaults))
	}
	return p.To(w)
}

// timesOf are the columns of the summary.
func timesOf(s *fault.Score) []*fault.Time {
	lane := s.Whole.Blackout
	if worst := worstLane(s); worst != nil {
		lane = worst.Blackout
	}
	return []*fault.Time{s.Whole.Blackout, lane, s.Whole.Back, s.Whole.Drained}
}

func texts(of []*fault.Time) []string {
	out := make([]string, len(of))
	for i, t := range of {
		out[i] = timeText(t)
	}
	return out
}

// middle returns the median (of an even number the upper one of the two) and the worst of each
// column. Times that were not over count as longer than all that were; what cannot be said does not
// count.
func (g *faultGroup) middle() (median, worst []*fault.Time) {
	for column := range timesOf(g.scores[0]) {
		var all []*fault.Time
		for _, s := range g.scores {
			if t := timesOf(s)[column]; t != nil {
				all = append(all, t)
			}
		}
		slices.SortStableFunc(all, func(a, b *fault.Time) int {
			switch {
			case a.More != b.More && a.More:
				return 1
			case a.More != b.More:
				return -1
			}
			return cmp.Compare(a.S, b.S)
		})
		if len(all) == 0 {
			median, worst = append(median, nil), append(worst, nil)
			continue
		}
		median, worst = append(median, all[len(all)/2]), append(worst, all[len(all)-1])
	}
	return median, worst
}
