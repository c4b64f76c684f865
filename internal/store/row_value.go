package store

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"carronade/units"
)

// A ValueKind is the type of a value; it decides how it is compared, parsed in a
// filter and printed.
type ValueKind uint8

// The kinds. Numbers of every kind are kept in Num, in the unit given here.
const (
	KindText     ValueKind = iota
	KindNumber             // a plain number
	KindCount              // whole, of events, batches, reports
	KindShare              // part of one
	KindDuration           // seconds
	KindSize               // bytes
	KindRate               // per second
	KindSpeed              // bytes per second
	KindTime               // seconds since the epoch, UTC
	KindBool               // Num 0 or 1
	kinds
)

// String is the word for a kind in documents and errors.
func (k ValueKind) String() string {
	if k >= kinds {
		return "value"
	}
	return [...]string{"text", "number", "count", "share", "duration", "size", "rate", "bytes a second", "time", "bool"}[k]
}

// A Value is one field of a report. Text is what is shown: a setting as it
// would be typed, a percentile that is a lower bound with its sign; empty if
// Kind and Num suffice. Values of KindText are compared by Text.
type Value struct {
	Kind ValueKind
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
	if v.Text != "" || v.Kind == KindText {
		return v.readable()
	}
	switch v.Kind {
	case KindCount:
		if v.Num >= 0 {
			return units.FormatCount(uint64(v.Num))
		}
	case KindShare:
		return units.FormatPercent(v.Num)
	case KindDuration:
		return units.FormatDuration(units.Seconds(v.Num))
	case KindSize:
		return units.FormatSize(int64(v.Num))
	case KindSpeed:
		return units.FormatSize(int64(v.Num)) + "/s"
	case KindRate:
		return units.FormatRate(v.Num)
	case KindTime:
		return time.Unix(0, int64(math.Round(v.Num*1e9))).UTC().Format(time.DateTime)
	case KindBool:
		return strconv.FormatBool(v.Num != 0)
	}
	return strconv.FormatFloat(v.Num, 'g', 4, 64)
}

// mostDecimals is the most that a person types. A text with more was computed.
const mostDecimals = 6

// readable is the text of a value, rounded if it is a rate or a time that was computed, such as
// 150.000000037/s. Num keeps all digits for comparisons.
func (v Value) readable() string {
	_, decimals, _ := strings.Cut(v.Text, ".")
	if len(decimals)-len(strings.TrimLeft(decimals, "0123456789")) <= mostDecimals {
		return v.Text
	}
	switch v.Kind {
	case KindRate:
		if r, err := units.ParseRate(exactRate(v.Text)); err == nil {
			return units.FlagRate(units.RoundRate(r, 6))
		}
	case KindDuration:
		if d, err := units.ParseDuration(v.Text); err == nil {
			step := time.Millisecond
			if d < time.Second {
				step = time.Microsecond
			}
			return units.FlagDuration(d.Round(step))
		}
	}
	return v.Text
}

// AtLeast is whether the value is only a lower bound: a percentile that fell
// among events that were never answered. Num is the bound.
func (v Value) AtLeast() bool { return strings.HasPrefix(v.Text, ">=") && v.Kind != KindText }

// Plain is the value for programs: a text, or the number in the kind's unit
// with all its digits.
func (v Value) Plain() string {
	switch v.Kind {
	case KindText:
		return v.Text
	case KindTime:
		return time.Unix(0, int64(math.Round(v.Num*1e9))).UTC().Format(time.RFC3339)
	case KindBool:
		return strconv.FormatBool(v.Num != 0)
	}
	return strconv.FormatFloat(v.Num, 'f', -1, 64)
}

// Any is the value for JSON: a text, a number in the kind's unit, or a bool.
func (v Value) Any() any {
	switch v.Kind {
	case KindText, KindTime:
		return v.Plain()
	case KindBool:
		return v.Num != 0
	}
	return v.Num
}

// Equal reports whether two values are the same, however they were typed: 1s is
// 1000ms.
func (v Value) Equal(o Value) bool {
	if v.Kind == KindText || o.Kind == KindText {
		return v.String() == o.String()
	}
	return v.Num == o.Num
}

// Compare orders values: numbers by size, before texts; texts by their letters.
func (v Value) Compare(o Value) int {
	switch {
	case v.Kind != KindText && o.Kind != KindText:
		return cmp.Compare(v.Num, o.Num)
	case v.Kind != KindText:
		return -1
	case o.Kind != KindText:
		return 1
	}
	return strings.Compare(v.Text, o.Text)
}
