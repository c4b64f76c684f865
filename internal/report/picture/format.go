package picture

import (
	"math"
	"strconv"
	"strings"
	"time"

	"carronade/units"
)

// Format prints a number of a unit in three significant digits, with the unit.
func Format(v float64, u Unit) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	switch u {
	case Micros:
		return sign + duration(v*1e3)
	case Seconds:
		return sign + duration(v*1e9)
	case PerSecond:
		return sign + units.FormatRate(v)
	case Bytes:
		return sign + size(v)
	case BytesPerS:
		return sign + size(v) + "/s"
	case Share:
		return sign + significant(v) + "%"
	case Percentile:
		return sign + percentile(v)
	case Plain:
		return sign + short(v)
	case Events:
		return sign + short(v)
	}
	return sign + short(v) + " " + string(u)
}

func duration(ns float64) string {
	if ns < 1e3 && ns > 0 {
		return significant(ns) + " ns"
	}
	if ns >= math.MaxInt64 {
		return "> 292 years"
	}
	return units.FormatDuration(time.Duration(math.Round(ns)))
}

func size(v float64) string {
	if v >= math.MaxInt64 {
		return "> 8 EiB"
	}
	return units.FormatSize(int64(v))
}

func short(v float64) string {
	switch {
	case v >= 1<<63:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case v >= 1000:
		return units.FormatCountShort(uint64(math.Round(v)))
	}
	return significant(v)
}

func significant(v float64) string {
	s := strconv.FormatFloat(v, 'g', 3, 64)
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != 0 && math.Abs(f) < 1e-6 {
		return s
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// percentile prints 1/(1-p).
func percentile(x float64) string {
	if x <= 1 {
		return "p0"
	}
	left := 100 / x
	places := max(0, int(math.Ceil(-math.Log10(left)))+1)
	s := strconv.FormatFloat(100-left, 'f', min(places, 12), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return "p" + s
}

func plain(n int) string { return strconv.Itoa(n) }

// Signed prints a plain number with its sign; a negligible number is 0.
func Signed(v float64) string {
	s := strconv.FormatFloat(math.Abs(v), 'g', 3, 64)
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || math.Abs(v) < 0.005 || math.IsNaN(v):
		return "0"
	case f >= 1000:
		s = short(f)
	default:
		s = strconv.FormatFloat(f, 'f', -1, 64)
	}
	if v < 0 {
		return "-" + s
	}
	return "+" + s
}
