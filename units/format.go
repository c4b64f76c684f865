package units

import (
	"math"
	"strconv"
	"strings"
)

// significant prints v in three significant digits without an exponent and without
// trailing zeros, and returns the printed number.
func significant(v float64) (text string, shown float64) {
	if v == 0 {
		return "0", 0
	}
	places := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	if places <= 0 {
		f := math.Pow10(-places)
		return whole(math.Round(v/f) * f)
	}
	// Beyond 12 decimal places, everything printed here is noise.
	text = strconv.FormatFloat(v, 'f', min(places, 12), 64)
	text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	if text == "-0" || text == "" {
		text = "0"
	}
	shown, _ = strconv.ParseFloat(text, 64)
	return text, shown
}

func whole(v float64) (text string, shown float64) {
	text = strconv.FormatFloat(v, 'f', 0, 64)
	shown, _ = strconv.ParseFloat(text, 64)
	return text, shown
}

// short prints v in three significant digits with a power of 1000.
func short(v float64) (text, unit string) {
	names := [...]string{"", "k", "M", "G", "T"}
	for i, name := range names {
		text, shown := significant(v)
		if math.Abs(shown) < 1000 || i == len(names)-1 {
			return text, name
		}
		v /= 1000
	}
	panic("unreachable")
}
