package judge

import (
	"math"
	"strings"
	"time"

	"carronade/internal/digest"
	"carronade/load"
	"carronade/measure"
)

// lowerField is the field of what a percentile would be without the generator's own
// delays; "" of fields that are no percentiles by which runs are compared.
func lowerField(field string) string {
	for _, t := range times {
		if p, ok := strings.CutPrefix(field, t+"_p"); ok {
			return t + "_lower_p" + p
		}
	}
	return ""
}

// leastMoved keeps percentiles above 0, so that differences stay shares of them: the
// cells of histograms begin there.
const leastMoved = 1e-6

// mostFrozen is how much of a measurement without a schedule the generator may not
// have run for the rate to be taken as it is.
const mostFrozen = 0.01

// unmovedValue is what a row's value would be without what its generator may have
// added to it. moved: that differs by more than a trusted value may.
func unmovedValue(r *digest.Row, field string) (v float64, moved bool) {
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

// unmoved is the sample of a field without what generators may have added.
func unmoved(rows []digest.Row, field string) []float64 {
	var out []float64
	for i := range rows {
		if x, _ := unmovedValue(&rows[i], field); !math.IsInf(x, 0) && !math.IsNaN(x) {
			if _, ok := rows[i].Num(field); ok {
				out = append(out, x)
			}
		}
	}
	return out
}

// anyMoved is whether the generator of some row may have moved a field further than
// that of a trusted one.
func anyMoved(field string, lists ...[]digest.Row) bool {
	for _, rows := range lists {
		for i := range rows {
			if _, moved := unmovedValue(&rows[i], field); moved {
				return true
			}
		}
	}
	return false
}

// noisy is whether the generator may have moved what a run measured, within the
// bound that its report states.
func noisy(r *digest.Row) bool { return r.Text("trust_level") == string(measure.Noisy) }
