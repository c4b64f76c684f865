package stats

import "math"

// What a difference is a share of is decided here, once, for comparisons and
// for steps:
//
//   - a difference is relative where it has something to be a share of: of two
//     samples where every value is more than 0 (a factor is looked for in all
//     pairs of them), of a step where the level before it is more than 0;
//   - everywhere else it is an amount, in the unit of the values, and so is
//     the smallest one worth naming: that share of the level it starts from;
//   - a level of 0 has no shares. From there any change counts that the test
//     is sure of: 3 % of nothing is nothing, and an amount made up instead
//     would be a limit that nobody asked for. Comparisons say so by AnyChange.
//     Whoever wants a smallest amount all the same asks for one (Row.Amount).

// positive is whether a factor of all values can be asked for.
func positive(values []float64) bool {
	for _, v := range values {
		if !(v > 0) {
			return false
		}
	}
	return len(values) > 0
}

// Change is the difference of two levels, without an interval: relative where
// the first is more than 0, else an amount.
func Change(before, after float64) Difference {
	d := Difference{Center: after - before, Lo: math.Inf(-1), Hi: math.Inf(1)}
	if before > 0 && after >= 0 {
		d.Center, d.Lo, d.Relative = after/before-1, -1, true
	}
	return d
}

// worth is the smallest difference worth naming, in the scale of a difference
// from a level, of an effect that is a share of it. Of a level of 0 it is 0.
func worth(effect, level float64, relative bool) float64 {
	if relative {
		return effect
	}
	return effect * math.Abs(level)
}
