package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"carronade/units"
)

// parseNumber parses the text of a filter as a number of a kind.
func parseNumber(k ValueKind, text string) (float64, error) {
	plain, notPlain := strconv.ParseFloat(text, 64)
	switch k {
	case KindNumber, KindCount:
		if notPlain == nil {
			return plain, nil
		}
		n, err := units.ParseCount(text)
		if err == nil {
			return float64(n), nil
		}
		// A setting that is a number in one report may be a time or a size in
		// another, and the text of the filter is then written as one of those.
		if v := guess(text); k == KindNumber && v.Kind != KindText {
			return v.Num, nil
		}
		return 0, err
	case KindShare:
		return units.ParseShare(text)
	case KindDuration:
		d, err := units.ParseDuration(text)
		return d.Seconds(), err
	case KindSize:
		if text == "none" || notPlain == nil && plain == unlimited {
			return unlimited, nil
		}
		n, err := units.ParseSize(text)
		return float64(n), err
	case KindSpeed:
		n, err := units.ParseSize(strings.TrimSuffix(text, "/s"))
		return float64(n), err
	case KindRate:
		return units.ParseRate(text)
	case KindBool:
		switch text {
		case "true", "yes", "1":
			return 1, nil
		case "false", "no", "0":
			return 0, nil
		}
		return 0, fmt.Errorf("must be true or false, not %q", text)
	}
	return 0, fmt.Errorf("%q cannot be compared with a %s", text, k)
}

func kindHint(k ValueKind) string {
	switch k {
	case KindDuration:
		return "write a time with its unit, such as 30s or 1.5ms"
	case KindSize, KindSpeed:
		return "write a size, such as 64KiB"
	case KindRate:
		return "write a rate, such as 50k/s"
	case KindShare:
		return "write a share, such as 1% or 0.01"
	case KindTime:
		return "write a date such as 2026-05-28 or '2026-05-28 10:21' (UTC), or an age such as 168h"
	case KindText:
		return "use = != or ~"
	}
	return filterHint
}

// moments are the formats of a date, and the length of what each denotes.
var moments = []struct {
	form string
	next func(time.Time) time.Time
}{
	{"2006", func(t time.Time) time.Time { return t.AddDate(1, 0, 0) }},
	{"2006-01", func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }},
	{time.DateOnly, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }},
	{"2006-01-02 15:04", func(t time.Time) time.Time { return t.Add(time.Minute) }},
	{"2006-01-02T15:04", func(t time.Time) time.Time { return t.Add(time.Minute) }},
	{time.DateTime, func(t time.Time) time.Time { return t.Add(time.Second) }},
	{"2006-01-02T15:04:05", func(t time.Time) time.Time { return t.Add(time.Second) }},
}

// parseMoment parses a date, whose length depends on its precision, or an age,
// which is the moment that long before now: in seconds since the epoch.
func parseMoment(text string, now time.Time) (low, high float64, err error) {
	for _, m := range moments {
		if t, err := time.ParseInLocation(m.form, text, time.UTC); err == nil {
			return float64(t.Unix()), float64(m.next(t).Unix()), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		x := float64(t.UnixNano()) / 1e9
		if t.Nanosecond() == 0 {
			return x, x + 1, nil // the whole second
		}
		return x, x, nil
	}
	age, err := units.ParseDuration(text)
	if err != nil {
		return 0, 0, fmt.Errorf("%q is neither a date nor an age", text)
	}
	x := float64(now.Add(-age).UnixNano()) / 1e9
	return x, x, nil
}

// A Last is how many of the newest reports are requested, or how old they may
// be.
type Last struct {
	N   int           // 0: all
	Age time.Duration // 0: any age
}

// ParseLast parses the argument of -n: 20, or an age such as 168h.
func ParseLast(text string) (Last, error) {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil && n > 0 {
		return Last{N: int(n)}, nil
	}
	age, err := units.ParseDuration(text)
	if err != nil || age <= 0 {
		return Last{}, fmt.Errorf("must be a number of reports such as 20, or an age such as 168h or 7d, not %q", text)
	}
	return Last{Age: age}, nil
}

// Since is the moment before which reports are too old; the zero time if none
// are.
func (l Last) Since(now time.Time) time.Time {
	if l.Age == 0 {
		return time.Time{}
	}
	return now.Add(-l.Age)
}
