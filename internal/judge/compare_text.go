package judge

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/units"
)

// Text writes the first page of the comparison for people: the verdict, what speaks against it, the row that decides,
// and the others.
func (c *Comparison) Text(w io.Writer, style layout.Style) error { return c.text(w, style, false) }

// FullText also writes what the response times consist of, and the distributions.
func (c *Comparison) FullText(w io.Writer, style layout.Style) error { return c.text(w, style, true) }

func (c *Comparison) text(w io.Writer, style layout.Style, full bool) error {
	p := &layout.Page{Style: style}
	p.Answer(verdictColor(stats.Verdict(c.Verdict)), strings.ToUpper(c.Verdict), c.why())
	machineLine(p, c.Machine)
	p.Title("compare " + c.Base.Name + " with " + c.Candidate.Name)
	p.Line("")
	p.Pair("", "base", c.Base.words())
	p.Pair("", "candidate", c.Candidate.words())
	leftOut(p, append(c.Base.LeftOut[:len(c.Base.LeftOut):len(c.Base.LeftOut)], c.Candidate.LeftOut...))
	for i := range c.Pairs {
		p.Line("")
		c.Pairs[i].text(p, len(c.Pairs) > 1, full)
	}
	for _, u := range c.Unpaired {
		p.Line("")
		p.Pair(layout.Yellow, "not compared", u.Words())
	}
	if !full {
		p.Line("")
		p.Note("--full also compares the other percentiles, and what the response consists of")
	}
	return p.To(w)
}

// why is what decided the verdict: that of the one workload, or how many have it.
func (c *Comparison) why() string {
	if len(c.Pairs) == 1 {
		return c.Pairs[0].Reason
	}
	n := 0
	for i := range c.Pairs {
		if c.Pairs[i].Verdict == c.Verdict {
			n++
		}
	}
	if n == 0 { // mixed
		return fmt.Sprintf("%d workloads, which contradict each other", len(c.Pairs))
	}
	return fmt.Sprintf("%d of %d workloads", n, len(c.Pairs))
}

// leftOut lists the reports that were not judged, by reason.
func leftOut(p *layout.Page, out []LeftOut) {
	for _, text := range leftOutTexts(out) {
		p.Pair(layout.Yellow, "left out", text)
	}
}

// leftOutTexts say which reports were left out, a text for each reason.
func leftOutTexts(out []LeftOut) (texts []string) {
	var whys []string
	of := map[string][]string{}
	for _, l := range out {
		if of[l.Why] == nil {
			whys = append(whys, l.Why)
		}
		of[l.Why] = append(of[l.Why], l.ID)
	}
	for _, why := range whys {
		texts = append(texts, list(of[why], 6)+": "+why)
	}
	return texts
}

// markdownNotes are remarks below a Markdown table.
func markdownNotes(b *strings.Builder, notes []string, out []LeftOut) {
	for _, text := range leftOutTexts(out) {
		notes = append(slices.Clip(notes), "left out: "+text)
	}
	for i, n := range notes {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString("- " + layout.Markdown(n) + "\n")
	}
}

// words are the number of a side's reports, and their ids.
func (s *Side) words() string {
	text := fmt.Sprintf("%s: %s", units.Plural(len(s.Reports), "report"), list(s.Reports, 12))
	if len(s.Reports) == 0 {
		text = "no report that can be judged"
	}
	if s.Older > 0 {
		text += fmt.Sprintf("; %s of older revisions not judged (--revisions judges all)", units.Plural(s.Older, "report"))
	}
	return text
}

// list joins names, at most most of them; commas puts commas between them.
func list(names []string, most int) string   { return listed(names, " ", most) }
func commas(names []string, most int) string { return listed(names, ", ", most) }

func listed(names []string, sep string, most int) string {
	if len(names) <= most {
		return strings.Join(names, sep)
	}
	return fmt.Sprintf("%s and %d others", strings.Join(names[:most-1], sep), len(names)-most+1)
}

// shownSettings are the settings that describe a workload.
var shownSettings = []string{
	"rate", "shape", "concurrency", "for", "count", "bytes", "size", "payload", "acks", "linger", "batch-size", "compression", "key", "clients",
	"events", "spans", "frames", "batch-events", "max-in-flight", "system-mem",
}

// workloadWords describes a workload by the settings that matter to people, and
// all flags of the system.
func workloadWords(settings []Setting) string {
	value := map[string]string{}
	var flags []string
	for _, s := range settings {
		value[s.Name] = s.Value
		if name, ok := strings.CutPrefix(s.Name, "flag."); ok {
			flags = append(flags, name+" "+s.Value)
		}
	}
	var parts []string
	for _, name := range shownSettings {
		if v := value[name]; v != "" && v != "none" {
			parts = append(parts, name+" "+v)
		}
	}
	parts = append(parts, flags...)
	if len(parts) == 0 {
		return "one workload"
	}
	return strings.Join(parts, ", ")
}

// text writes one pair.
func (pr *Pair) text(p *layout.Page, several, full bool) {
	what := workloadWords(pr.Workload)
	if several {
		what = fmt.Sprintf("%s (base %d, candidate %d)", what, len(pr.Base), len(pr.Candidate))
	}
	p.Title(pr.Op + " " + pr.Target)
	p.Pair("", "workload", what)
	for _, d := range pr.Differs {
		p.Pair("", "differs", d.Name+" "+d.words())
	}
	for i, f := range pr.Findings {
		label, code := "beware", layout.Yellow
		if f.Severe {
			label, code = "NOT EQUAL", layout.Red
		}
		if i > 0 && pr.Findings[i-1].Severe == f.Severe {
			label = ""
		}
		p.Pair(code, label, f.About+": "+f.Text)
	}
	if len(pr.Findings) > 0 && pr.Findings[0].Severe {
		p.Pair(layout.Red, "", "these may be the only reason for a difference")
	}
	if several {
		p.Pair(verdictColor(stats.Verdict(pr.Verdict)), "verdict", pr.Verdict+": "+pr.Reason)
	}
	p.Line("")
	judgements(p, pr.Rows)
	if full {
		pr.partsText(p)
		distributions(p, pr.Distribution)
	}
}

// judgements writes rows with their verdicts, and below them the reasons of
// those that cannot tell.
func judgements(p *layout.Page, rows []Judgement) {
	g := judgementTable("base", "candidate", percent(rows[0].Confidence))
	explored := false
	for i := range rows {
		r := &rows[i]
		if !r.Primary && !explored {
			explored = true
			g.Row("exploratory:")
			g.Paint(0, layout.Dim)
		}
		r.in(g, r.verdict(), verdictColor(r.Verdict))
	}
	p.Table(g)
	var whys []string
	of := map[string][]string{}
	for i := range rows {
		if why := rows[i].Why; why != "" {
			if of[why] == nil {
				whys = append(whys, why)
			}
			of[why] = append(of[why], rows[i].Title)
		}
	}
	var zero []string
	for i := range rows {
		if rows[i].decidedFromZero() {
			zero = append(zero, rows[i].Title)
		}
	}
	if len(zero) > 0 {
		p.Note(strings.Join(zero, ", ") + ": " + fromZero)
	}
	var widened []string
	for i := range rows {
		if rows[i].Widened && rows[i].Why != movedWords {
			widened = append(widened, rows[i].Title)
		}
	}
	if slices.ContainsFunc(rows, func(j Judgement) bool { return j.atMost() }) {
		p.Note(atMostWords)
	}
	if len(widened) > 0 {
		p.Note(strings.Join(widened, ", ") + ": " + widenedWords)
	}
	for _, why := range whys {
		if len(of[why]) == 1 && of[why][0] == rows[0].Title && rows[0].Primary {
			continue // the verdict says it
		}
		titles := strings.Join(of[why], ", ")
		if len(of[why]) == len(rows) {
			titles = "all rows"
		}
		p.Note(fmt.Sprintf("%s: cannot tell (%s)", titles, why))
	}
}

// judgementTable is an empty table of judgements of two sides.
func judgementTable(base, candidate, confidence string) *layout.Table {
	t := &layout.Table{Headings: 1, Left: []int{5}}
	t.Row("", base, candidate, "differs", confidence+" interval", "verdict")
	return t
}

// in adds the row of a judgement.
func (j *Judgement) in(t *layout.Table, verdict, color string) {
	difference, interval := j.change()
	t.Row(j.Title, j.value(j.Base), j.value(j.Candidate), difference, interval, verdict)
	t.Paint(5, color)
}

// widenedWords explain why an interval is wider than chance makes it.
const widenedWords = "the interval allows for what the generators of noisy runs added"

// fromZero is the note for a verdict to which no effect applies.
const fromZero = "the base is 0, so there are no percentages: any significant change counts"

// decidedFromZero is whether a row differs from a base of 0.
func (j *Judgement) decidedFromZero() bool {
	return j.AnyChange && (j.Verdict == stats.Better || j.Verdict == stats.Worse)
}

// atMost is whether one of the medians is an upper bound.
func (j *Judgement) atMost() bool { return j.Base.AtMost || j.Candidate.AtMost }

// value is a median with the unit of its kind.
func (j *Judgement) value(e Estimated) string {
	if e.Median == nil {
		return "-"
	}
	text := store.Value{Kind: j.kind, Num: *e.Median}.String()
	if j.kind == store.KindNumber || j.kind == store.KindCount {
		text = strconv.FormatFloat(*e.Median, 'g', 3, 64)
	}
	return boundSign(e.AtLeast, e.AtMost) + text
}

// change is the difference and its interval in words. If one median is a lower
// bound, the difference is a bound too, and its other end is unknown.
func (j *Judgement) change() (difference, interval string) {
	d := j.Difference
	if d == nil {
		return "-", "-"
	}
	difference, interval = amount(d.Center, d.Relative, j.kind), "unknown"
	switch {
	case j.Base.AtLeast && j.Candidate.AtLeast:
		return "unknown", interval
	case j.Candidate.AtLeast:
		return ">= " + difference, interval
	case j.Base.AtLeast:
		return "<= " + difference, interval
	case d.Lo != nil && d.Hi != nil:
		interval = amount(*d.Lo, d.Relative, j.kind) + " .. " + amount(*d.Hi, d.Relative, j.kind)
	}
	return difference, interval
}

// amount is a difference with its sign: a share, or an amount of a kind.
func amount(v float64, relative bool, kind store.ValueKind) string {
	if relative || kind == store.KindShare {
		return signed(v)
	}
	sign := "+"
	if v < 0 {
		sign = "-"
	}
	return sign + plainAmount(math.Abs(v), relative, kind)
}

// plainAmount is an amount without a sign.
func plainAmount(v float64, relative bool, kind store.ValueKind) string {
	switch {
	case relative || kind == store.KindShare:
		return percent(v)
	case kind == store.KindNumber || kind == store.KindCount:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return store.Value{Kind: kind, Num: v}.String()
}

// signed is a share as a percentage with its sign.
func signed(v float64) string {
	if math.Abs(v) >= 10 {
		return fmt.Sprintf("x%.0f", 1+v)
	}
	text := fmt.Sprintf("%+.1f%%", 100*v)
	if text == "-0.0%" || text == "+0.0%" {
		return "0.0%"
	}
	return text
}

// verdict is the verdict in words.
func (j *Judgement) verdict() string {
	if j.Verdict == stats.Same && !j.AnyChange {
		return "same within " + j.effect()
	}
	return string(j.Verdict)
}

// effect is the smallest difference worth naming, in a few columns.
func (j *Judgement) effect() string {
	return strings.ReplaceAll(plainAmount(j.Effect, j.raw.Difference.Relative, j.kind), " ", "")
}

// percent is a share as a percentage.
func percent(v float64) string { return units.FormatPercent(v) }

func verdictColor(v stats.Verdict) string {
	switch v {
	case stats.Better:
		return layout.Green
	case stats.Worse, Mixed:
		return layout.Red
	case stats.Unknown:
		return layout.Yellow
	}
	return ""
}

// distributions writes percentiles side by side, with a bar for how much longer
// or shorter the candidate's are.
func distributions(p *layout.Page, all []Percentile) {
	for i, d := range all {
		if i > 0 && all[i-1].Time == d.Time {
			continue
		}
		g := &layout.Table{Headings: 1, Left: []int{4}}
		g.Row(strings.ReplaceAll(d.Time, "_", " "), "base", "candidate", "differs", "")
		for _, e := range all[i:] {
			if e.Time != d.Time {
				break
			}
			change, bar := "", ""
			switch {
			case e.BaseAtLeast || e.CandidateAtLeast: // the difference is unknown
			case e.Base != nil && e.Candidate != nil && *e.Base > 0 && *e.Candidate > 0:
				change, bar = signed(*e.Candidate / *e.Base - 1), ratioBar(*e.Candidate / *e.Base, p.Style.ASCII)
			}
			g.Row(e.At, duration(e.Base, boundSign(e.BaseAtLeast, e.BaseAtMost)), duration(e.Candidate, boundSign(e.CandidateAtLeast, e.CandidateAtMost)), change, bar)
		}
		p.Line("")
		p.Table(g)
	}
}

func duration(seconds *float64, sign string) string {
	if seconds == nil {
		return "-"
	}
	return sign + store.Value{Kind: store.KindDuration, Num: *seconds}.String()
}

// ratioBar draws a ratio to the left or right of a line that means equal: a
// cell is 5 %, and a full side is 50 % or more.
func ratioBar(ratio float64, ascii bool) string {
	const cells = 10
	full, line := "█", "│"
	if ascii {
		full, line = "#", "|"
	}
	n := int(math.Round(math.Abs(math.Log(ratio)) / math.Log(1.05)))
	n = min(n, cells)
	if ratio < 1 {
		return strings.Repeat(" ", cells-n) + strings.Repeat(full, n) + line
	}
	return strings.Repeat(" ", cells) + line + strings.Repeat(full, n)
}

// Words describe a compared workload in one line.
func (pr *Pair) Words() string { return pr.Op + " " + pr.Target + ", " + workloadWords(pr.Workload) }

// Words describe a workload that only one side has, in one line.
func (u *Unpaired) Words() string {
	return fmt.Sprintf("the %s alone has %s of %s on %s", u.Side, units.Plural(len(u.Reports), "report"), workloadWords(u.Workload), u.System)
}

// Words describe a row in one line: both medians, the difference with its
// interval, the verdict, and why there is none.
func (j *Judgement) Words() string {
	return j.words(j.numbers("base", "candidate")+": "+j.verdict(), j.Why)
}

// words are a verdict with its reason, if there is one.
func (j *Judgement) words(text, why string) string {
	if why != "" {
		text += " (" + why + ")"
	}
	if j.decidedFromZero() {
		text += "; " + fromZero
	}
	return text
}

// numbers are the medians of both sides under the given names, and the
// difference.
func (j *Judgement) numbers(base, candidate string) string {
	difference, interval := j.change()
	return fmt.Sprintf("%s %s, %s %s, differs by %s (%s interval %s)",
		base, j.value(j.Base), candidate, j.value(j.Candidate), difference, percent(j.Confidence), interval)
}
