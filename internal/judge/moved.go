package judge

import (
	"math"
	"slices"
	"strings"
	"time"

	"carronade/internal/store"
	"carronade/load"
	"carronade/measure"
)

// lowerField is the field of what a percentile would be without the generator's
// own delays; "" for fields that are not percentiles used for comparison.
func lowerField(field string) string {
	for _, t := range times {
		if p, ok := strings.CutPrefix(field, t+"_p"); ok {
			return t + "_lower_p" + p
		}
	}
	return ""
}

// leastMoved keeps percentiles above 0, so that differences remain shares of
// them: the cells of histograms begin there.
const leastMoved = 1e-6

// mostFrozen is the share of a measurement without a schedule for which the
// generator may be frozen before the rate is corrected.
const mostFrozen = 0.01

// correctedValue is what a row's value would be without what its generator may
// have added to it. moved: the difference is larger than a trusted value's may
// be.
func correctedValue(r *store.Row, field string) (v float64, moved bool) {
	v, ok := r.Num(field)
	if !ok {
		return v, false
	}
	if field == throughput.field {
		// Without a schedule nothing is sent while the generator does not run.
		frozen, _ := r.Num("freeze_total")
		elapsed, _ := r.Num("elapsed")
		if mode := r.Text("mode"); mode == "" || mode == string(load.OpenLoop) || !(frozen > mostFrozen*elapsed) || frozen >= elapsed {
			return v, false
		}
		return v / (1 - frozen/elapsed), true
	}
	lower, ok := r.Num(lowerField(field))
	if !ok || math.IsNaN(lower) {
		return v, false
	}
	if measure.LevelOf(ofSeconds(lower), ofSeconds(v)) == measure.Trusted {
		return v, false
	}
	return max(lower, leastMoved), true
}

func ofSeconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// correctedSample is the sample of a field without what generators may have
// added.
func correctedSample(rows []store.Row, field string) []float64 {
	var out []float64
	for i := range rows {
		if x, _ := correctedValue(&rows[i], field); !math.IsInf(x, 0) && !math.IsNaN(x) {
			if _, ok := rows[i].Num(field); ok {
				out = append(out, x)
			}
		}
	}
	return out
}

// anyMoved is whether the generator of some row may have moved a field further
// than that of a trusted run.
func anyMoved(field string, lists ...[]store.Row) bool {
	for _, rows := range lists {
		for i := range rows {
			if _, moved := correctedValue(&rows[i], field); moved {
				return true
			}
		}
	}
	return false
}

// boundedBy is the field that shows whether a percentile was lengthened: rows have the lower values of those that are
// compared. It is the next compared one above, else the highest.
func boundedBy(field string) string {
	compared := measure.PercentilesOf(measure.Compared)
	for _, t := range times {
		for _, p := range measure.StandardPercentiles() {
			if field == timeField(t, measure.PercentileName(p)) {
				i, _ := slices.BinarySearch(compared, p)
				return timeField(t, measure.PercentileName(compared[min(i, len(compared)-1)]))
			}
		}
	}
	return field
}

// upperBounds is whether the generators of at least half of the rows may have lengthened a time, so that its median is
// only an upper bound.
func upperBounds(field string, lists ...[]store.Row) bool {
	field = boundedBy(field)
	if lowerField(field) == "" {
		return false
	}
	moved, all := 0, 0
	for _, rows := range lists {
		for i := range rows {
			if _, ok := rows[i].Num(field); !ok {
				continue
			}
			all++
			if _, ok := correctedValue(&rows[i], field); ok {
				moved++
			}
		}
	}
	return moved > 0 && 2*moved >= all
}

// atMostWords explain the sign of an upper bound.
const atMostWords = "<= is an upper bound: the generator may have lengthened this time"

// boundSign comes before a number that is only a bound.
func boundSign(atLeast, atMost bool) string {
	switch {
	case atLeast:
		return ">= "
	case atMost:
		return "<= "
	}
	return ""
}

// noisy is whether the generator may have moved what a run measured, within the
// bound that its report states.
func noisy(r *store.Row) bool { return r.Text("trust_level") == string(measure.Noisy) }
