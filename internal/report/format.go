package report

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"carronade/measure"
	"carronade/units"
)

// figure prints v with three significant digits and trailing zeros, so that numbers of a
// column align.
func figure(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// clock prints a time for a column: the unit has two places, so that numbers align: "1.20 ms",
// "850 us", "12.3 s ".
func clock(us float64) string {
	for _, u := range []struct {
		name  string
		of    float64 // in us
		below float64
	}{{"ns", 1e-3, 999.5}, {"us", 1, 999.5}, {"ms", 1e3, 999.5}, {"s ", 1e6, 60}} {
		if v := us / u.of; math.Abs(v) < u.below {
			if u.name == "ns" {
				if v == 0 {
					return "0   "
				}
				return fmt.Sprintf("%.0f ns", v)
			}
			return figure(v) + " " + u.name
		}
	}
	return units.FormatDuration(time.Duration(us * 1e3))
}

// Clock prints a time in microseconds with three significant digits, for running text: "5.00
// ms".
func Clock(us float64) string { return tidy(clock(us)) }

// Percentile prints a percentile the same way, with >= if it is a lower bound.
func Percentile(v measure.Value) string { return tidy(value(v)) }

// value prints a percentile for a column.
func value(v measure.Value) string {
	return v.Text(func(d time.Duration) string { return clock(measure.Micros(d)) })
}

// seconds prints seconds in words.
func seconds(s float64) string { return units.FormatDuration(units.Seconds(s)) }

// share prints n's share of the whole, blank if n is 0, so that other rows stand out.
func share(n, of uint64) string {
	if n == 0 || of == 0 {
		return ""
	}
	return units.FormatPercent(float64(n) / float64(of))
}
