package judge

import (
	"fmt"
	"math"

	"carronade/internal/store"
	"carronade/internal/verdict/stats"
)

// A Ceiling is the answer of one search for the highest rate at which limits hold, in events a
// second: the ceiling lies between Holds and Fails.
type Ceiling struct {
	Holds float64 // 0: no rate holds
	Fails float64 // 0: not known, such as when the generator was the limit
}

// CompareCeilings compares the ceilings that two sets of searches found. The numbers shown are
// those of the lower ends. effect is the smallest difference that counts, and between what sides that were
// searched at different times may differ by, as shares.
//
// The lower ends are compared as any other number of repeated runs, and so are the upper ends.
// The verdict stands only if both give it: a search whose interval is wider has a lower end that
// is lower for no other reason. An upper end that is not known is taken to be as high as it may.
//
// With fewer repetitions than stats.Least a difference is also clear if every interval of one side
// lies above every interval of the other.
func CompareCeilings(base, candidate []Ceiling, effect, between float64, o stats.Options) Judgement {
	top := 0.0
	for _, side := range [][]Ceiling{base, candidate} {
		for _, c := range side {
			top = max(top, ceilingFactor*c.Holds, ceilingFactor*c.Fails)
		}
	}
	lower := stats.Row{Better: stats.More, Effect: effect, Between: between}
	upper := lower
	lower.Base, upper.Base = ends(base, top)
	lower.Candidate, upper.Candidate = ends(candidate, top)
	lower.Clear = apart(base, candidate) || apart(candidate, base)
	upper.Clear = lower.Clear
	low, high := stats.Family([]stats.Row{lower}, o)[0], stats.Family([]stats.Row{upper}, o)[0]
	j := judgement(ceiling, low, store.KindRate)
	j.Confidence, j.asked = o.Confidence, lower.Effect
	j.worst = max(low.Difference.Worst(stats.More), high.Difference.Worst(stats.More))
	if j.Verdict != stats.Unknown && high.Verdict != j.Verdict {
		j.Why = fmt.Sprintf("by the lower ends of the intervals it is %s, by the upper ends %s", j.Verdict, high.Verdict)
		j.Verdict = stats.Unknown
	}
	return j
}

// ends are the lower and the upper ends of ceilings. top stands for an upper end that is not known.
func ends(of []Ceiling, top float64) (lower, upper []float64) {
	for _, c := range of {
		lower = append(lower, c.Holds)
		if c.Fails == 0 {
			c.Fails = top
		}
		upper = append(upper, c.Fails)
	}
	return lower, upper
}

// apart reports whether every interval of above lies above every interval of below.
func apart(below, above []Ceiling) bool {
	most, least := 0.0, math.Inf(1)
	for _, c := range below {
		if c.Fails == 0 {
			return false
		}
		most = max(most, c.Fails)
	}
	for _, c := range above {
		least = min(least, c.Holds)
	}
	return len(below) > 0 && len(above) > 0 && least > most
}

// ceilingsOf are the ceilings of the reports of searches.
func ceilingsOf(rows []store.Row) (out []Ceiling) {
	for i := range rows {
		if holds, ok := rows[i].Num(ceiling.field); ok {
			fails, _ := rows[i].Num(ceilingUpper.field)
			out = append(out, Ceiling{Holds: holds, Fails: fails})
		}
	}
	return out
}

// decideBySearches takes the verdict on ceilings from their intervals.
func (c *contest) decideBySearches(j *Judgement, o stats.Options) {
	if c.field != ceiling.field || c.history {
		return
	}
	found := CompareCeilings(ceilingsOf(c.base[0]), ceilingsOf(c.candidate), c.effect, c.between, o)
	j.Verdict, j.Why, j.worst = found.Verdict, found.Why, found.worst
}
