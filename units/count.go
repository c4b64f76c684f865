package units

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
)

const (
	wantCount = "a whole number, with k, M or G for thousands, millions or billions, such as 250000, 10M or 1e6"
	wantShare = "a part of one or a percentage from 0 to 100%, such as 0.01 or 1%"
)

// multiples are decimal, for counts and rates. b is a billion, like g.
var multiples = map[string]int64{"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}

// ParseCount parses a count: "250000", "10M" (ten million), "1.5k", "1e6", "250_000",
// and "250,000" as FormatCount prints it. k, M, G (or B) and T are powers of 1000, in
// either case. A result that is not an integer is an error.
func ParseCount(s string) (uint64, error) {
	bad := func(why error) (uint64, error) { return 0, newError("count", s, why, wantCount) }
	n, unit, err := number(ungrouped(s))
	if err != nil {
		return bad(err)
	}
	by, ok := multiples[strings.ToLower(unit)]
	if !ok {
		return bad(notUnit(unit, "count"))
	}
	n = scaled(n, by)
	if !n.IsInt() {
		return bad(errors.New("is not a whole number"))
	}
	if !n.Num().IsUint64() {
		return bad(errRange)
	}
	return n.Num().Uint64(), nil
}

// ungrouped removes the commas from a text of digits in groups of three. It leaves any
// other text alone, so that "1,5" is an error and not fifteen.
func ungrouped(s string) string {
	groups := strings.Split(strings.TrimSpace(s), ",")
	if len(groups) == 1 {
		return s
	}
	for i, g := range groups {
		if len(g) > 3 || len(g) == 0 || i > 0 && len(g) != 3 || strings.Trim(g, "0123456789") != "" {
			return s
		}
	}
	return strings.Join(groups, "")
}

// FormatCount prints every digit, in groups of three: "12,345,678".
func FormatCount(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	out := make([]byte, 0, len(digits)+len(digits)/3)
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, digits[i])
	}
	return string(out)
}

// FormatCountShort prints three significant digits: "850", "12.3 k", "12.3 M".
func FormatCountShort(n uint64) string {
	text, unit := short(float64(n))
	if unit == "" {
		return text
	}
	return text + " " + unit
}

// ParseShare parses a share, "1%" or "0.01", as a number from 0 to 1.
func ParseShare(s string) (float64, error) {
	bad := func(why error) (float64, error) { return 0, newError("share", s, why, wantShare) }
	n, unit, err := number(s)
	if err != nil {
		return bad(err)
	}
	switch unit {
	case "":
	case "%":
		n.Quo(n, big.NewRat(100, 1))
	default:
		return bad(notUnit(unit, "share"))
	}
	if n.Cmp(big.NewRat(1, 1)) > 0 {
		return bad(errors.New("is more than the whole"))
	}
	share, _ := n.Float64()
	return share, nil
}

// FormatPercent prints a share as a percentage in three significant digits: 0.01 as
// "1%", 0.98765 as "98.8%". A share below 1 never prints as 100%, and NaN and
// infinities print as "n/a".
func FormatPercent(share float64) string {
	if math.IsNaN(share) || math.IsInf(share, 0) {
		return "n/a"
	}
	p := share * 100
	if p > 99.9 && p < 100 {
		// As many decimal places as the first digit that is not a nine needs: 99.996%
		// must not look like 100%.
		places := int(min(max(math.Ceil(-math.Log10(100-p)), 1), 9))
		text := strconv.FormatFloat(p, 'f', places, 64)
		if strings.HasPrefix(text, "100") {
			text = "99.999999999"
		}
		return text + "%"
	}
	text, _ := significant(p)
	return text + "%"
}

// Plural prints a count and its noun, what: "1 event", "12,345 events", "3 batches".
// The plural takes an s, or es after ch.
func Plural[N int | int64 | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	end := "s"
	if strings.HasSuffix(what, "ch") {
		end = "es"
	}
	return FormatCount(uint64(n)) + " " + what + end
}
