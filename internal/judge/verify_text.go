package judge

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/units"
)

// Text writes the verification for people: the verdict, then each workload with
// what its newest revision was compared with, and the steps in its history. If nothing was
// asked for, several workloads have a line each.
func (v *Verification) Text(w io.Writer, style layout.Style) error {
	p := &layout.Page{Style: style}
	title := "verify"
	if v.Asked != "" {
		title += " " + v.Asked
	}
	if v.Against != "" {
		title += " against " + v.Against
	}
	if !v.Since.IsZero() {
		title += ", reports since " + v.Since.UTC().Format("2006-01-02 15:04")
	}
	why := v.why()
	p.Answer(gateColor(v.Verdict), gateWords[v.Verdict], why)
	p.Title(title)
	if len(v.LeftOut) > 0 {
		p.Line("")
	}
	leftOut(p, v.LeftOut)
	if v.Asked == "" && v.Against == "" && len(v.Groups) > 1 {
		v.overview(p)
		return p.To(w)
	}
	for i := range v.Groups {
		p.Line("")
		v.Groups[i].text(p, why)
	}
	for _, m := range v.Missing {
		p.Line("")
		p.Pair(layout.Yellow, CannotTell, m.Words())
	}
	return p.To(w)
}

// gateWords are the answers of a gate by its verdict.
var gateWords = map[string]string{NotWorse: "PASS", CannotTell: "CANNOT TELL", Worse: "FAIL"}

// why says what decided the verdict: the numbers of the one workload, or how many have it.
func (v *Verification) why() string {
	all := len(v.Groups) + len(v.Missing)
	if len(v.Groups) == 1 && all == 1 {
		return v.Groups[0].why()
	}
	n := 0
	if v.Verdict == CannotTell {
		n = len(v.Missing)
	}
	for i := range v.Groups {
		if v.Groups[i].Verdict == v.Verdict {
			n++
		}
	}
	switch v.Verdict {
	case NotWorse:
		return fmt.Sprintf("none of %d workloads is worse", all)
	case Worse:
		return fmt.Sprintf("%d of %d workloads are worse", n, all)
	}
	return fmt.Sprintf("for %d of %d workloads", n, all)
}

// why says what decided the verdict of a workload: its rows, or the reason of those that have it.
func (g *Gate) why() string {
	var out []string
	if g.Survival.Gate == g.Verdict && g.Survival.Reason != "" {
		out = append(out, g.Survival.Reason)
	}
	of := map[string][]string{} // titles by reason
	var whys []string
	for i := range g.Rows {
		r := &g.Rows[i]
		if r.Gate != g.Verdict {
			continue
		}
		why := r.Reason
		if why == "" {
			difference, interval := r.change()
			why = fmt.Sprintf("%s (%s interval %s), %s", difference, percent(r.Confidence), interval, r.verdictWords())
		}
		if of[why] == nil {
			whys = append(whys, why)
		}
		of[why] = append(of[why], r.Title)
	}
	for _, why := range whys {
		out = append(out, strings.Join(of[why], ", ")+": "+why)
	}
	return strings.Join(out, "; ")
}

// mostGates is how many workloads the overview lists.
const mostGates = 20

// overview has a line for each workload, the worst first.
func (v *Verification) overview(p *layout.Page) {
	order := make([]*Gate, len(v.Groups))
	for i := range v.Groups {
		order[i] = &v.Groups[i]
	}
	slices.SortStableFunc(order, func(a, b *Gate) int {
		return cmp.Or(slices.Index(gateOrder, b.Verdict)-slices.Index(gateOrder, a.Verdict), cmp.Compare(b.worstChange(), a.worstChange()))
	})
	p.Line("")
	t := &layout.Table{Left: []int{0, 1, 2}, Elastic: []int{2}, Keep: []int{20}}
	for _, g := range order[:min(len(order), mostGates)] {
		t.Row(gateWords[g.Verdict], g.brief(), strings.TrimPrefix(g.Op+" ", "produce ")+g.shortTarget()+", "+workloadWords(g.Workload))
	}
	p.Table(t)
	if n := len(order) - mostGates; n > 0 {
		p.Note(fmt.Sprintf("and %d more", n))
	}
	p.Line("")
	p.Note("a filter, such as rate=5k/s, shows workloads with their numbers")
}

// shortTarget is a target without what most of a store have in common: its scheme's slashes, and a host if it has a path.
func (g *Gate) shortTarget() string {
	kind, rest, ok := strings.Cut(g.Target, "://")
	if !ok {
		return g.Target
	}
	host, path, _ := strings.Cut(rest, "/")
	return strings.TrimSpace(kind + " " + cmp.Or(path, host))
}

// worstChange is by how much the worst row changed for the worse, as a share.
func (g *Gate) worstChange() float64 {
	worst := 0.0
	for i := range g.Rows {
		if r := &g.Rows[i]; r.Gate == Worse && r.Difference != nil && r.Difference.Relative {
			worst = max(worst, math.Abs(r.Difference.Center))
		}
	}
	return worst
}

// brief is what decided a workload's verdict, in few words.
func (g *Gate) brief() string {
	switch {
	case g.Survival.Gate == Worse:
		return "the system died"
	case len(g.newest().Reports) == 0:
		return "no trusted report"
	}
	var out []string
	for i := range g.Rows {
		r := &g.Rows[i]
		if r.Gate != g.Verdict {
			continue
		}
		if g.Verdict == CannotTell {
			why, _, _ := strings.Cut(r.Reason, ":")
			return why
		}
		difference, _ := r.change()
		if since, _, step := strings.Cut(r.Reason, " since "); step {
			difference = since
		}
		out = append(out, r.Title+" "+difference)
		if g.Verdict == Worse {
			break
		}
	}
	return strings.Join(out, ", ")
}

func gateColor(verdict string) string {
	switch verdict {
	case NotWorse:
		return layout.Green
	case Worse:
		return layout.Red
	}
	return layout.Yellow
}

// text writes one gate. said is the text of the answer, whose reasons are not repeated.
func (g *Gate) text(p *layout.Page, said string) {
	p.Title(g.Op + " " + g.Target)
	p.Pair("", "workload", workloadWords(g.Workload))
	if g.Branch != "" {
		p.Pair("", "branch", g.Branch)
	}
	newest := g.newest()
	p.Pair("", "newest", newest.words()+", "+newest.reports())
	if g.Survival.Reason != "" {
		p.Pair(gateColor(g.Survival.Gate), "", g.Survival.Gate+": "+g.Survival.Reason)
	}
	if g.Behind != nil {
		p.Pair(layout.Yellow, "beware", g.BehindWords())
	}
	if len(g.OtherSystems) > 0 {
		p.Pair("", "elsewhere", commas(g.OtherSystems, 4)+" has reports of this workload too, judged separately (give --same-system if it is one system)")
	}
	if g.Noisy > 0 {
		p.Pair(layout.Yellow, "noisy", units.Plural(g.Noisy, "report")+": the verdict allows for what their generators added to times")
	}
	before, base := g.Revisions[:len(g.Revisions)-1], "before"
	switch {
	case g.baseline:
		base = "baseline"
		p.Pair("", base, before[0].words()+", "+before[0].reports())
	case len(before) > 0:
		n := 0
		for _, l := range before {
			n += len(l.Reports)
		}
		what := units.Plural(len(before), "revision")
		if newest.Revision == "" {
			what = fmt.Sprintf("%d runs or their repetitions (reports without a revision are distinguished by time)", len(before))
		}
		text := fmt.Sprintf("%s, %s, since %s", what, units.Plural(n, "report"), before[0].words())
		if g.Older > 0 {
			text += fmt.Sprintf("; %d older ones were not read", g.Older)
		}
		p.Pair("", "before", text)
	}
	p.Line("")
	t := judgementTable(base, "newest", "90%")
	for i := range g.Rows {
		r := &g.Rows[i]
		r.in(t, r.verdictWords(), gateColor(r.Gate))
	}
	p.Table(t)
	if slices.ContainsFunc(g.Rows, func(r GateRow) bool { return r.atMost() }) {
		p.Note(atMostWords)
	}
	for _, r := range g.Rows {
		if r.decidedFromZero() {
			p.Note(r.Title + ": " + fromZero)
		}
		if r.Reason != "" && !strings.Contains(said, r.Reason) {
			p.Note(fmt.Sprintf("%s: %s (%s)", r.Title, r.Gate, r.Reason))
		}
	}
	if c := g.Confirmed; c != nil {
		p.Note(c.Words() + "; the verdict is " + g.Verdict)
	}
	g.history(p)
}

func runsWords(ids []string) string {
	if len(ids) == 1 {
		return "run " + ids[0]
	}
	return "runs " + list(ids, 6)
}

// verdictWords are the gate's verdict on a row, and better if the row is
// better.
func (r *GateRow) verdictWords() string {
	if r.Gate == NotWorse && r.Verdict == stats.Better {
		return "better"
	}
	if r.Gate == NotWorse {
		if r.AnyChange {
			return NotWorse
		}
		return fmt.Sprintf("not %s worse", r.effect())
	}
	return r.Gate
}

// words are the name and date of a level.
func (l *Level) words() string { return dated(l.Revision, l.Date) }

// reports lists a level's reports, and those of them that are not judged.
func (l *Level) reports() string {
	text := units.Plural(len(l.Reports), "report") + ": " + list(l.Reports, 8)
	if len(l.Reports) == 0 {
		text = "no report that can be judged"
	}
	if len(l.LeftOut) > 0 {
		text += "; left out " + list(l.LeftOut, 8)
	}
	return text
}

// Short is a level's name where there is little room.
func (l *Level) Short() string {
	if l.Revision == "" {
		return l.Date.UTC().Format("01-02 15:04")
	}
	return shortRevision(l.Revision)
}

// history draws the levels of each row with its steps, and lists the steps with
// their dates.
func (g *Gate) history(p *layout.Page) {
	if len(g.Revisions) < 2*leastStep {
		return
	}
	p.Line("")
	for _, r := range g.Rows {
		var series []float64
		marks := map[int]bool{}
		for i, l := range g.Revisions {
			if v := l.Medians[r.Field]; v != nil {
				for _, s := range g.Steps {
					if s.Field == r.Field && s.Index == i {
						marks[len(series)] = true
					}
				}
				series = append(series, *v)
			}
		}
		if len(series) < 2 {
			continue
		}
		const label = 16
		line, lo, hi := sparkline(series, marks, layout.Columns-label-2, p.Style.ASCII)
		p.Line(layout.PadRight("  "+r.Title, label) + line)
		show := func(v float64) string { return store.Value{Kind: r.kind, Num: v}.String() }
		p.Line(strings.Repeat(" ", label) + p.Paint(layout.Dim, fmt.Sprintf("from %s to %s", show(lo), show(hi))))
	}
	if len(g.Steps) == 0 {
		return
	}
	p.Line("")
	t := &layout.Table{Headings: 1, Left: []int{1, 2, 6}}
	t.Row("step", "revision", "", "from", "to", "by", "")
	for _, s := range g.Steps {
		show := func(v float64) string { return store.Value{Kind: s.kind, Num: v}.String() }
		word, code := "better", layout.Green
		if s.Worse {
			word, code = "recovered", layout.Yellow
		}
		switch {
		case s.Stands:
			word, code = "worse", layout.Red
		case s.Doubtful:
			word, code = CannotTell, layout.Yellow
		}
		t.Row(s.Date.UTC().Format("2006-01-02 15:04"), shortRevision(s.Revision), s.Title, show(s.Before), show(s.After), s.by(), word)
		t.Paint(6, code)
	}
	p.Table(t)
}

// sparkline draws a series in one line of at most cells characters, scaled
// between its minimum and its maximum, with a mark before each step. If the
// series is longer, each character is the mean of several values.
func sparkline(series []float64, marks map[int]bool, cells int, ascii bool) (line string, lo, hi float64) {
	shades, mark := []rune("▁▂▃▄▅▆▇█"), "│"
	if ascii {
		shades, mark = []rune("._-=+*%#"), "|"
	}
	cells = min(len(series), cells-len(marks))
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range series {
		lo, hi = min(lo, v), max(hi, v)
	}
	var b strings.Builder
	for c := range cells {
		from, to := c*len(series)/cells, (c+1)*len(series)/cells
		sum := 0.0
		for i, v := range series[from:to] {
			sum += v
			if marks[from+i] {
				b.WriteString(mark)
			}
		}
		level := 0.5
		if hi > lo {
			level = (sum/float64(to-from) - lo) / (hi - lo)
		}
		b.WriteRune(shades[min(int(level*float64(len(shades))), len(shades)-1)])
	}
	return b.String(), lo, hi
}

// BehindWords say that a workload was not run at the newest revision.
func (g *Gate) BehindWords() string {
	return "no report of " + g.Behind.words() + " is of this workload, so it is not judged on it"
}

// Words describe a verified workload in one line.
func (g *Gate) Words() string {
	text := g.Op + " " + g.Target + ", " + workloadWords(g.Workload)
	if g.Branch != "" {
		text += ", branch " + g.Branch
	}
	return text
}

// Words describe a row in one line: both medians, the difference with its
// interval, and the gate's verdict.
func (r *GateRow) Words() string {
	base := "before"
	if r.baseline {
		base = "baseline"
	}
	return r.words(r.numbers(base, "newest")+": "+r.verdictWords(), r.Reason)
}

// Words say what a confirming run showed.
func (c *Confirmed) Words() string {
	text := "it was not as bad again"
	switch {
	case c.Died > 0:
		text = fmt.Sprintf("the system died in %d of %s, which is as bad", c.Died, runsWord(len(c.Reports)))
	case c.Again:
		text = "it was as bad again"
	case c.Unknown:
		text = "some events were never answered, so it may have been as bad again"
	}
	return "confirming " + runsWords(c.Reports) + ": " + text
}
