package units

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// What is printed for people to read has blanks and three digits. What they are
// to type after a flag may have neither: a blank ends the argument, and digits
// that were rounded away may be those that mattered. So hints, and the values
// that help shows for flags, are printed by the functions of this file.

// FlagSize prints a size as it can be typed, in full: "64KiB", "1500B". ParseSize
// reads back the very same. A negative size is printed as none.
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

// FlagSizeAbove prints a size as it can be typed, rounded up to a whole unit of
// which there are ten or more: what is said to suffice must suffice when typed.
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

// FlagDuration prints a duration as it can be typed, in full: "1m", "1.5s",
// "24h". ParseDuration reads back the very same. A negative duration is printed
// as none.
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

// FlagRate prints a rate as it can be typed, in full: "50k/s", "0.5/s". ParseRate
// reads back the very same. What is no rate is printed as none.
func FlagRate(perSecond float64) string {
	if !(perSecond >= 0 && perSecond <= MaxRate) {
		perSecond = 0
	}
	unit := ""
	for _, next := range []string{"k", "m", "g"} {
		if perSecond < 1000 || math.Mod(perSecond, 1000) != 0 {
			break
		}
		perSecond, unit = perSecond/1000, next
	}
	return strconv.FormatFloat(perSecond, 'f', -1, 64) + unit + "/s"
}
