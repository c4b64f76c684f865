package judge

import (
	"cmp"
	"math"
	"slices"

	"carronade/internal/store"
	"carronade/internal/verdict/stats"
)

// A contest is one quantity of two sides. Some of their values are lower
// bounds: percentiles among events that were never answered. The tests use
// these as they are. Each verdict is then tested again with the worst possible
// values, and is kept only if it is the same.
type contest struct {
	quantity
	base      [][]store.Row // of a comparison one list; of a history one per revision
	candidate []store.Row
	history   bool
	effect    float64 // as requested
	between   float64 // see betweenGroups
	pooled    bool    // the levels of the history are one: they do not show how levels differ
}

// A raisedSide is the side whose lower bounds are taken to be as bad as
// possible.
type raisedSide int

const (
	raiseNone raisedSide = iota
	raiseBase
	raiseCandidate
	raisedSides
)

// A correctedSide is the side whose values are taken without what their
// generators may have added to them.
type correctedSide int

const (
	correctNone correctedSide = iota
	correctBase
	correctCandidate
)

// correctedRow is the contest for the statistics, with the values of one side
// without what their generators may have added.
func (c *contest) correctedRow(to correctedSide) stats.Row {
	r := c.row(raiseNone)
	switch {
	case to == correctCandidate:
		r.Candidate = correctedSample(c.candidate, c.field)
	case to != correctBase:
	case c.history && c.pooled:
		r.History[0] = correctedSample(slices.Concat(c.base...), c.field)
	case c.history:
		for i, rows := range c.base {
			r.History[i] = correctedSample(rows, c.field)
		}
	default:
		r.Base = correctedSample(c.base[0], c.field)
	}
	return r
}

// row is the contest for the statistics.
func (c *contest) row(up raisedSide) stats.Row {
	r := stats.Row{Better: c.better, Amount: c.amount > 0, Effect: c.effect, Between: c.between}
	ceiling := math.NaN()
	if up == raiseCandidate {
		ceiling = c.ceiling()
	}
	r.Candidate = raised(c.candidate, c.field, ceiling)
	ceiling = math.NaN()
	if up == raiseBase {
		ceiling = c.ceiling()
		if c.history && len(c.base) >= stats.Levels && !c.pooled {
			// The test against a history is Student's, and a single huge value
			// would hide every difference from it: there the bounds are as bad
			// as the newest.
			ceiling = largest(c.candidate, c.field)
		}
	}
	if !c.history {
		r.Base = raised(c.base[0], c.field, ceiling)
		return r
	}
	r.History = [][]float64{}
	for _, rows := range c.base {
		r.History = append(r.History, raised(rows, c.field, ceiling))
	}
	if c.pooled {
		r.History = [][]float64{slices.Concat(r.History...)}
	}
	return r
}

// ceilingFactor times the worst value is worse than it by more than any effect:
// no value that tests and intervals compute is larger.
const ceilingFactor = 4

// ceiling is a value larger than everything measured.
func (c *contest) ceiling() float64 {
	v := largest(c.candidate, c.field)
	for _, rows := range c.base {
		v = max(v, largest(rows, c.field))
	}
	return ceilingFactor * v
}

// judgeContests judges quantities together.
func judgeContests(all []contest, o stats.Options) []Judgement {
	family := func(up raisedSide) []stats.Comparison {
		rows := make([]stats.Row, len(all))
		for i := range all {
			rows[i] = all[i].row(up)
		}
		return stats.Family(rows, o)
	}
	out := make([]Judgement, len(all))
	var doubted [raisedSides]bool // the sides that have lower bounds
	moved := false
	for i, found := range family(raiseNone) {
		c := &all[i]
		out[i] = judgement(c.quantity, found, kindOf(c.field, append(c.base[:len(c.base):len(c.base)], c.candidate)...))
		j := &out[i]
		j.Confidence, j.asked, j.worst = o.Confidence, c.effect, found.Difference.Worst(c.better)
		j.Base.AtLeast, j.Candidate.AtLeast = lowerBounds(c.field, c.base...), lowerBounds(c.field, c.candidate)
		j.Base.AtMost, j.Candidate.AtMost = upperBounds(c.field, c.base...), upperBounds(c.field, c.candidate)
		j.LowerBounds = j.Base.AtLeast || j.Candidate.AtLeast
		j.Widened = anyMoved(c.field, c.base...) || anyMoved(c.field, c.candidate)
		moved = moved || j.Widened
		doubted[raiseBase] = doubted[raiseBase] || anyBound(c.field, c.base...)
		doubted[raiseCandidate] = doubted[raiseCandidate] || anyBound(c.field, c.candidate)
	}
	if moved {
		for _, to := range []correctedSide{correctBase, correctCandidate} {
			rows := make([]stats.Row, len(all))
			for i := range all {
				rows[i] = all[i].correctedRow(to)
			}
			for i, found := range stats.Family(rows, o) {
				if out[i].Widened {
					out[i].widen(&found, all[i].better)
				}
			}
		}
	}
	if doubted[raiseBase] {
		for i, found := range family(raiseBase) {
			if anyBound(all[i].field, all[i].base...) {
				out[i].withdraw(found.Verdict, stats.Worse, stats.Same)
			}
		}
	}
	if doubted[raiseCandidate] {
		for i, found := range family(raiseCandidate) {
			if anyBound(all[i].field, all[i].candidate) {
				out[i].withdraw(found.Verdict, stats.Better, stats.Same)
				out[i].worst = max(out[i].worst, found.Difference.Worst(all[i].better))
			}
		}
	}
	single := o // Bonferroni's bound for several contests
	single.Alpha = cmp.Or(o.Alpha, stats.Defaults.Alpha) / float64(len(all))
	for i := range all {
		all[i].decideBySearches(&out[i], single)
	}
	return out
}

// withdraw withdraws a verdict listed in at if the given verdict, the one with
// lower bounds as bad as possible, differs from it.
func (j *Judgement) withdraw(verdict stats.Verdict, at ...stats.Verdict) {
	for _, v := range at {
		if j.Verdict == v && verdict != v {
			j.Verdict, j.Why = stats.Unknown, j.boundWords()
		}
	}
}

// widen extends the interval to include another one, of values that may be the
// true ones, and withdraws a verdict that the other comparison does not give.
func (j *Judgement) widen(other *stats.Comparison, better stats.Direction) {
	j.worst = max(j.worst, other.Difference.Worst(better))
	if d := j.Difference; d != nil && d.Lo != nil && d.Hi != nil && other.Difference.Bounded() {
		lo, hi := min(*d.Lo, other.Difference.Lo), max(*d.Hi, other.Difference.Hi)
		d.Lo, d.Hi = &lo, &hi
	}
	if j.Verdict != stats.Unknown && other.Verdict != j.Verdict {
		j.Verdict, j.Why = stats.Unknown, movedWords
	}
}

// movedWords explain that the generators' bounds cover a difference.
const movedWords = "in noisy runs the generator may have caused a difference of this size"

// boundWords explain why numbers are not reliable.
func (j *Judgement) boundWords() string {
	if j.LowerBounds {
		return "some events were never answered, so this time is a lower bound"
	}
	return "some events were never answered, so in some runs this time is a lower bound"
}

// sample is one number for each row that has the field.
func sample(rows []store.Row, field string) []float64 { return raised(rows, field, math.NaN()) }

// raised is the sample with its lower bounds raised to ceiling if that is
// higher; a NaN ceiling raises none.
func raised(rows []store.Row, field string, ceiling float64) []float64 {
	var out []float64
	for i := range rows {
		x, ok := rows[i].Num(field)
		if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		if ceiling > x {
			if v, _ := rows[i].Get(field); v.AtLeast() {
				x = ceiling
			}
		}
		out = append(out, x)
	}
	return out
}

// largest is the largest value of a field, 0 if there is none.
func largest(rows []store.Row, field string) float64 {
	v := 0.0
	for _, x := range sample(rows, field) {
		v = max(v, x)
	}
	return v
}

// countBounds counts values of a field, and those that are lower bounds.
func countBounds(field string, lists [][]store.Row) (bounds, all int) {
	for _, rows := range lists {
		for i := range rows {
			if v, ok := rows[i].Get(field); ok {
				all++
				if v.AtLeast() {
					bounds++
				}
			}
		}
	}
	return bounds, all
}

// anyBound is whether some row has only a lower bound of the field.
func anyBound(field string, lists ...[]store.Row) bool {
	bounds, _ := countBounds(field, lists)
	return bounds > 0
}

// lowerBounds is whether at least half of the rows have only a lower bound of
// the field, so that their median is one.
func lowerBounds(field string, lists ...[]store.Row) bool {
	bounds, all := countBounds(field, lists)
	return bounds > 0 && 2*bounds >= all
}
