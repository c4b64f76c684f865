package units

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Output for reading has blanks and three digits. A flag's value may have neither: a
// blank ends the argument, and digits that were rounded away may matter. So hints, and
// the values that help shows for flags, are printed by the functions of this file.

// FlagSize prints a size in full, as a flag's value: "64KiB", "1500B". ParseSize parses
// it to the same size. A negative size is printed as 0.
func FlagSize(bytes int64) string {
	bytes = max(0, bytes)
	names := [...]string{"TiB", "GiB", "MiB", "KiB"}
	for i, name := range names {
		if unit := int64(1) << (10 * (len(names) - i)); bytes >= unit && bytes%unit == 0 {
			return strconv.FormatInt(bytes/unit, 10) + name
		}
	}
	return strconv.FormatInt(bytes, 10) + "B"
}

// FlagSizeAbove prints a size as a flag's value, rounded up to a unit of which it has
// ten or more: a size that is stated to suffice must still suffice after rounding.
func FlagSizeAbove(bytes int64) string {
	unit := int64(1)
	for unit < 1<<40 && bytes/unit >= 10<<10 {
		unit <<= 10
	}
	if rest := bytes % unit; rest > 0 && bytes <= math.MaxInt64-unit {
		bytes += unit - rest
	}
	return FlagSize(bytes)
}

// FlagSizeBelow is FlagSizeAbove, rounded down: a size that is stated to fit must still fit.
func FlagSizeBelow(bytes int64) string {
	unit := int64(1)
	for unit < 1<<40 && bytes/unit >= 10<<10 {
		unit <<= 10
	}
	return FlagSize(bytes - bytes%unit)
}

// FlagDuration prints a duration in full, as a flag's value: "1m", "1.5s", "24h".
// ParseDuration parses it to the same duration. A negative duration is printed as 0.
func FlagDuration(d time.Duration) string {
	text := strings.Replace(max(0, d).String(), "µ", "u", 1)
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// RoundRate rounds a rate to a number of significant decimal digits.
func RoundRate(perSecond float64, digits int) float64 {
	out, _ := strconv.ParseFloat(strconv.FormatFloat(perSecond, 'g', digits, 64), 64) // it parses what it printed
	return out
}

// FlagRate prints a rate in full, as a flag's value: "50k/s", "0.5/s". ParseRate parses
// it to the same rate. An invalid rate is printed as 0.
func FlagRate(perSecond float64) string {
	if !(perSecond >= 0 && perSecond <= MaxRate) {
		perSecond = 0
	}
	unit := ""
	for _, next := range []string{"k", "M", "G"} {
		if perSecond < 1000 || math.Mod(perSecond, 1000) != 0 {
			break
		}
		perSecond, unit = perSecond/1000, next
	}
	return strconv.FormatFloat(perSecond, 'f', -1, 64) + unit + "/s"
}
