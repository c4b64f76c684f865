package stats

import "math"

// This file decides what a difference is a share of, for comparisons and for
// steps:
//
//   - A difference is relative if it can be a share: for two samples, if every
//     value is greater than 0 (factors are computed for all pairs of values); for
//     a step, if the level before it is greater than 0.
//   - Otherwise it is an amount, in the unit of the values, and so is the
//     smallest one worth naming: the effect times the level before.
//   - A level of 0 has no shares. From there any change counts that the test is
//     sure of: 3 % of 0 is 0, and an invented amount would be a limit that the
//     user did not choose. Comparisons report this as AnyChange. For a smallest
//     amount anyway, set Row.Amount.

// positive is whether all values are greater than 0, so that factors between
// them exist.
func positive(values []float64) bool {
	for _, v := range values {
		if !(v > 0) {
			return false
		}
	}
	return len(values) > 0
}

// Change is the difference of two levels, without an interval: relative if the
// first is greater than 0, else an amount.
func Change(before, after float64) Difference {
	d := Difference{Center: after - before, Lo: math.Inf(-1), Hi: math.Inf(1)}
	if before > 0 && after >= 0 {
		d.Center, d.Lo, d.Relative = after/before-1, -1, true
	}
	return d
}

// smallestEffect is the smallest difference worth naming, in the scale of a
// difference from level, for an effect that is a share. For a level of 0 it is
// 0.
func smallestEffect(effect, level float64, relative bool) float64 {
	if relative {
		return effect
	}
	return effect * math.Abs(level)
}
