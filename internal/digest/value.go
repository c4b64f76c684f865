package digest

import (
	"math"
	"strconv"
	"strings"
	"time"

	"carronade/units"
)

// A Kind is the type of a value; it decides how it is compared, parsed in a
// filter and printed.
type Kind uint8

// The kinds. Numbers of every kind are kept in Num, in the unit given here.
const (
	Text     Kind = iota
	Number        // a plain number
	Count         // whole, of events, batches, reports
	Share         // part of one
	Duration      // seconds
	Size          // bytes
	Rate          // per second
	Speed         // bytes per second
	Time          // seconds since the epoch, UTC
	Bool          // Num 0 or 1
	kinds
)

// String is the word for a kind in documents and errors.
func (k Kind) String() string {
	if k >= kinds {
		return "value"
	}
	return [...]string{"text", "number", "count", "share", "duration", "size", "rate", "bytes a second", "time", "bool"}[k]
}

// A Value is one field of a report. Text is what is shown: a setting as it
// would be typed, a percentile that is a lower bound with its sign; empty if
// Kind and Num suffice. Values of the kind Text are compared by Text.
type Value struct {
	Kind Kind
	// Independent fields say what was done to what. Reports are grouped and
	// compared by them.
	Independent bool
	// Derived settings follow from another one, such as a profile: in a
	// comparison over that one they may differ.
	Derived bool
	Num     float64
	Text    string
}

// unlimited is the number of a setting without a limit: below all others.
const unlimited = -1

// String is the value as users see it.
func (v Value) String() string {
	if v.Text != "" || v.Kind == Text {
		return v.Text
	}
	switch v.Kind {
	case Count:
		if v.Num >= 0 {
			return units.FormatCount(uint64(v.Num))
		}
	case Share:
		return units.FormatPercent(v.Num)
	case Duration:
		return units.FormatDuration(units.Seconds(v.Num))
	case Size:
		return units.FormatSize(int64(v.Num))
	case Speed:
		return units.FormatSize(int64(v.Num)) + "/s"
	case Rate:
		return units.FormatRate(v.Num)
	case Time:
		return time.Unix(0, int64(math.Round(v.Num*1e9))).UTC().Format(time.DateTime)
	case Bool:
		return strconv.FormatBool(v.Num != 0)
	}
	return strconv.FormatFloat(v.Num, 'g', 4, 64)
}

// AtLeast is whether the value is only a lower bound: a percentile that fell
// among events that were never answered. Num is the bound.
func (v Value) AtLeast() bool { return strings.HasPrefix(v.Text, ">=") && v.Kind != Text }

// Plain is the value for programs: a text, or the number in the kind's unit
// with all its digits.
func (v Value) Plain() string {
	switch v.Kind {
	case Text:
		return v.Text
	case Time:
		return time.Unix(0, int64(math.Round(v.Num*1e9))).UTC().Format(time.RFC3339)
	case Bool:
		return strconv.FormatBool(v.Num != 0)
	}
	return strconv.FormatFloat(v.Num, 'f', -1, 64)
}

// Any is the value for JSON: a text, a number in the kind's unit, or a bool.
func (v Value) Any() any {
	switch v.Kind {
	case Text, Time:
		return v.Plain()
	case Bool:
		return v.Num != 0
	}
	return v.Num
}

// Equal reports whether two values are the same, however they were typed: 1s is
// 1000ms.
func (v Value) Equal(o Value) bool {
	if v.Kind == Text || o.Kind == Text {
		return v.String() == o.String()
	}
	return v.Num == o.Num
}

// Compare orders values: numbers by size, before texts; texts by their letters.
func (v Value) Compare(o Value) int {
	switch {
	case v.Kind != Text && o.Kind != Text:
		switch {
		case v.Num < o.Num:
			return -1
		case v.Num > o.Num:
			return 1
		}
		return 0
	case v.Kind != Text:
		return -1
	case o.Kind != Text:
		return 1
	case v.Text < o.Text:
		return -1
	case v.Text > o.Text:
		return 1
	}
	return 0
}
