package judge

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/internal/workload"
)

// Looks are the numbers of runs of each side after which --repeat auto judges a
// comparison, until there is a verdict. The error probability of each look is
// LookAlpha, so that of all together is at most 5 % (Bonferroni's bound,
// whatever the dependence between them). If the time runs out, the last look may
// be at another number of runs; it replaces one of these.
var Looks = []int{4, 6, 10, 16, 24}

// LookAlpha is the error of one of the Looks.
var LookAlpha = stats.Defaults.Alpha / float64(len(Looks))

// decider is the one quantity that decides a comparison, named before anything
// is measured: the requested one; else, of searches, the ceiling; else that of the first limit of the runs (--slo)
// that can be compared; else, under a schedule, the response p99; else throughput,
// since without a schedule the rate is what is measured.
func decider(asked string, sides ...[]store.Row) quantity {
	for _, q := range judgedQuantities() {
		if q.field == asked {
			return q
		}
	}
	if haveAll(ceiling.field, sides) {
		return ceiling
	}
	if q, ok := limited(sides); ok {
		return q
	}
	if haveAll(responseP99.field, sides) {
		return responseP99
	}
	return throughput
}

// limited is the percentile of the first limit on one, if all runs have the same limits.
// Other limits (such as no failures) hardly show which side is better.
func limited(sides [][]store.Row) (quantity, bool) {
	text := ""
	for _, rows := range sides {
		for i := range rows {
			v, _ := rows[i].Get("slo")
			if text == "" {
				text = v.Text
			}
			if v.Text == "" || v.Text != text {
				return quantity{}, false
			}
		}
	}
	for _, l := range limitsOf(text) {
		if l.Stat != workload.PercentileStat {
			continue
		}
		time := l.Time
		if time == "" {
			time = "response"
			if !haveAll(responseP99.field, sides) {
				time = "service"
			}
		}
		field := timeAt(time, strconv.FormatFloat(l.Percentile, 'f', -1, 64)).field
		for _, q := range judgedQuantities() {
			if q.field == field && haveAll(field, sides) {
				return q, true
			}
		}
	}
	return quantity{}, false
}

// limitsOf parses limits separated by spaces, which may also be within one. A limit begins with
// a word that has an operator in it or behind it.
func limitsOf(text string) (out []workload.Limit) {
	words := strings.Fields(text)
	for from := 0; from < len(words); {
		to := from + 1
		for to < len(words) && strings.IndexAny(words[to], "<>=") < 1 && (to+1 == len(words) || strings.IndexAny(words[to+1], "<>=") != 0) {
			to++
		}
		if l, err := workload.ParseLimit(strings.Join(words[from:to], " ")); err == nil {
			out = append(out, l)
		}
		from = to
	}
	return out
}

// decide adds the row that decides, and sets the verdict.
func (pr *Pair) decide(main Judgement) {
	main.Primary = true
	pr.Rows = append([]Judgement{main}, pr.Rows...)
	for i := range pr.Rows {
		pr.Rows[i].countDeaths(&pr.Survival)
		if pr.replaced != "" {
			pr.Rows[i].Verdict, pr.Rows[i].Why = stats.Unknown, pr.replaced
		}
	}
	pr.Verdict, pr.Reason = pr.verdict()
}

// verdict is that of the row that decides, unless the candidate's system died or
// another row contradicts it.
func (pr *Pair) verdict() (verdict, reason string) {
	main := &pr.Rows[0]
	v := main.Verdict
	difference, interval := main.change()
	reason = fmt.Sprintf("%s: %s before, %s now, %s (%s interval %s)",
		main.Title, main.value(main.Base), main.value(main.Candidate), difference, percent(main.Confidence), interval)
	if main.Why != "" {
		reason += "; " + main.Why
	}
	switch {
	case pr.Survival.Gate == Worse:
		return Worse, pr.Survival.Reason
	case pr.Survival.Gate == CannotTell && v == stats.Same:
		return CannotTell, pr.Survival.Reason
	}
	var price []string
	for i := range pr.Rows {
		if pr.Contradicts(&pr.Rows[i]) {
			price = append(price, pr.Rows[i].Title)
		}
	}
	if doubts := pr.doubts(); len(price) == 0 && len(doubts) > 0 && (v == stats.Better || v == stats.Same) {
		return CannotTell, fmt.Sprintf("%s; but %s may be worse (needs %d repetitions)", reason, strings.Join(doubts, ", "), stats.Least)
	}
	if len(price) > 0 {
		text := fmt.Sprintf("%s; but worse: %s", reason, strings.Join(price, ", "))
		switch v {
		case stats.Better:
			return Mixed, text
		case stats.Same:
			return CannotTell, text
		}
	}
	return string(v), reason
}

// Contradicts is whether a row withdraws the verdict of the one that decides if
// that is better or the same.
func (pr *Pair) Contradicts(r *Judgement) bool {
	return !r.Primary && r.Verdict == stats.Worse && slices.Contains(pr.guards, r.Field)
}

// doubts are the rows that would withdraw the verdict, whose median is worse by more than a
// relevant difference, but with too few repetitions to tell.
func (pr *Pair) doubts() (titles []string) {
	for i := range pr.Rows {
		r := &pr.Rows[i]
		if !r.Primary && slices.Contains(pr.guards, r.Field) && r.Verdict == stats.Unknown && min(r.Base.N, r.Candidate.N) < stats.Least && r.looksWorse() {
			titles = append(titles, r.Title)
		}
	}
	return titles
}

// looksWorse is whether the difference of the medians is worse by a relevant one, whatever its
// interval.
func (j *Judgement) looksWorse() bool {
	if j.Difference == nil {
		return false
	}
	worse := j.Difference.Center
	if j.Better == "more" {
		worse = -worse
	}
	return worse > 0 && (j.AnyChange || worse >= j.Effect)
}

// guards are the fields that must not be worse if the one that decides is
// better or the same. Events that are refused at once are fast, so they are
// failures and unknown answers; under a schedule throughput and, if the percentile
// of a limit decides, the p99; and without one, unless a metric was requested, the
// p99 next to throughput.
func guards(asked string, sides ...[]store.Row) []string {
	out := []string{failures.field, unknown.field}
	switch {
	case haveAll(ceiling.field, sides):
		return out // the verdict is on both ends
	case haveAll(responseP99.field, sides):
		if out = append(out, throughput.field); asked == "" {
			out = append(out, responseP99.field)
		}
		return out
	case asked == "":
		for _, q := range primary(sides...) {
			out = append(out, q.field)
		}
	}
	return out
}

// verdict combines the pairs: worse or better if none contradicts it, mixed if
// one does; otherwise cannot tell if any cannot tell, else same.
func (c *Comparison) verdict() string {
	n := map[string]int{}
	for i := range c.Pairs {
		n[c.Pairs[i].Verdict]++
	}
	better, worse := string(stats.Better), string(stats.Worse)
	switch {
	case n[Mixed] > 0, n[better] > 0 && n[worse] > 0:
		return Mixed
	case n[worse] > 0:
		return worse
	case n[better] > 0:
		return better
	case n[CannotTell] > 0:
		return CannotTell
	}
	return string(stats.Same)
}

// mostReplaced is how many more runs of one side than of the other may have
// been replaced, of as many as the smaller side has.
const mostReplaced = 2

// replacedWords say why the verdict is missing if many more runs of one side were
// replaced, "" if not. The cause may be the difference between the sides, and
// then the runs that were trusted are not comparable.
func replacedWords(base, candidate []store.Row) string {
	replacing := func(r *store.Row) bool { return r.Text("replaces") != "" }
	b, c := count(base, replacing), count(candidate, replacing)
	n, m := max(1, len(base)-b), max(1, len(candidate)-c)
	more := math.Abs(float64(b)/float64(n) - float64(c)/float64(m))
	if more*float64(min(n, m)) < mostReplaced+0.5 {
		return ""
	}
	return fmt.Sprintf("%d of the base's runs and %d of the candidate's were not trustworthy and were replaced, so the remaining ones may not be comparable", b, c)
}
