package units

import "math"

var (
	blocks = []rune("▁▂▃▄▅▆▇█")
	ramp   = []rune("_.-:=+*#") // if blocks cannot be shown
)

// Spark prints a series as one character a value, from the lowest block for base (or
// the minimum, if that is less) to the highest for the maximum. NaN and infinities
// print as a blank.
func Spark(values []float64, base float64, ascii bool) string {
	levels := blocks
	if ascii {
		levels = ramp
	}
	lo, hi := base, math.Inf(-1)
	for _, v := range values {
		if isNumber(v) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	out := make([]rune, len(values))
	for i, v := range values {
		switch {
		case !isNumber(v):
			out[i] = ' '
		case hi <= lo:
			out[i] = levels[0]
		default:
			out[i] = levels[int(math.Round((v-lo)/(hi-lo)*float64(len(levels)-1)))]
		}
	}
	return string(out)
}

func isNumber(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
