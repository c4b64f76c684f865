package units

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
)

const wantDuration = "numbers with ns, us, ms, s, m, h or d, such as 500ms, 20s or 1h30m"

const day = 24 * time.Hour

// Tried in this order: a unit that is a prefix of another comes after it.
var durationUnits = []struct {
	name string
	unit time.Duration
}{
	{"ns", time.Nanosecond},
	{"us", time.Microsecond},
	{"µs", time.Microsecond}, // U+00B5, on keyboards
	{"μs", time.Microsecond}, // U+03BC, its NFKC form
	{"ms", time.Millisecond},
	{"s", time.Second},
	{"m", time.Minute},
	{"h", time.Hour},
	{"d", day},
}

// ParseDuration parses a duration such as "500ms", "1.5s", "1h30m" or "2d". A unit is
// required, since a bare number means milliseconds to one tool and seconds to the next;
// only "0" needs none. A day has 24 hours. The result is rounded to the nearest
// nanosecond.
func ParseDuration(s string) (time.Duration, error) {
	bad := func(why error) (time.Duration, error) { return 0, newError("duration", s, why, wantDuration) }
	rest := strings.TrimSpace(s)
	if rest == "0" {
		return 0, nil
	}
	sum := new(big.Rat)
	for first := true; first || rest != ""; first = false {
		n, tail, err := number(rest)
		if errors.Is(err, errNotNumber) && !first {
			return bad(fmt.Errorf("has %q where a number was expected", rest))
		} else if err != nil {
			return bad(err)
		}
		if tail == "" || isDigit(tail, 0) || tail[0] == '.' {
			return bad(errors.New("has a number without a unit"))
		}
		found := false
		for _, u := range durationUnits {
			after, ok := strings.CutPrefix(tail, u.name)
			if !ok || isLetter(after) {
				continue
			}
			sum.Add(sum, scaled(n, int64(u.unit)))
			rest, found = strings.TrimSpace(after), true
			break
		}
		if !found {
			return bad(notUnit(leadingWord(tail), "duration"))
		}
	}
	ns := round(sum)
	if !ns.IsInt64() {
		return bad(errors.New("is out of range (292 years)"))
	}
	return time.Duration(ns.Int64()), nil
}

func isLetter(s string) bool {
	return s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z')
}

// leadingWord returns s up to its first digit or blank.
func leadingWord(s string) string {
	if i := strings.IndexAny(s, "0123456789 \t"); i >= 0 {
		return s[:i]
	}
	return s
}

var shortDurations = []struct {
	name  string
	unit  time.Duration
	below float64 // in units
}{
	{"ns", time.Nanosecond, 1000},
	{"us", time.Microsecond, 1000},
	{"ms", time.Millisecond, 1000},
	{"s", time.Second, 60},
}

// FormatDuration prints a duration in three significant digits up to a minute ("85 us",
// "1.23 ms", "12.3 s"), and a longer one in its two largest units ("2m03s", "1h02m",
// "3d04h").
func FormatDuration(d time.Duration) string {
	if d < 0 {
		// -d of the smallest duration overflows; a nanosecond does not matter.
		if d == -1<<63 {
			d++
		}
		return "-" + FormatDuration(-d)
	}
	// Rounding may carry into the next unit (59.96 s is 1m00s), so each form is checked
	// after rounding.
	if d == 0 {
		return "0 s"
	}
	for _, u := range shortDurations {
		if text, v := significant(float64(d) / float64(u.unit)); v < u.below {
			return text + " " + u.name
		}
	}
	if s := d.Round(time.Second); s < time.Hour {
		return fmt.Sprintf("%dm%02ds", s/time.Minute, s%time.Minute/time.Second)
	}
	if m := d.Round(time.Minute); m < day {
		return fmt.Sprintf("%dh%02dm", m/time.Hour, m%time.Hour/time.Minute)
	}
	h := d.Round(time.Hour)
	return fmt.Sprintf("%dd%02dh", h/day, h%day/time.Hour)
}

// FormatDurations prints a range of durations, with one unit if both have the same: "5.52 to 11.2 ms".
func FormatDurations(low, high time.Duration) string {
	from, to := FormatDuration(low), FormatDuration(high)
	if number, unit, ok := strings.Cut(from, " "); ok && (low == 0 || strings.HasSuffix(to, " "+unit)) {
		from = number
	}
	return from + " to " + to
}

// Seconds returns a number of seconds, as in documents, as a duration, rounded to the
// nearest nanosecond.
func Seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
