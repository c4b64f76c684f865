package units

import (
	"errors"
	"math"
	"math/big"
	"strings"
)

const wantRate = "events per second, or a number with k, M or G and /s, /min or /h, such as 50000, 50k/s, 3M/s or 3/min"

// MaxRate is the highest rate that ParseRate accepts, in events/s: a thousand events
// per nanosecond, the resolution of clocks. A higher one is a typing error.
const MaxRate = 1e12

// rateTimes are the seconds by the unit after the slash.
var rateTimes = map[string]int64{
	"s": 1, "sec": 1, "second": 1,
	"m": 60, "min": 60, "minute": 60,
	"h": 3600, "hour": 3600,
}

// ParseRate parses a rate in events/s: "50000/s", "50k/s", "0.5/s", "3/min" or "3/m"
// (three a minute), "2/h". A bare number is per second. k, M, G and T are powers of 1000,
// in either case, but "3m" is refused: it may mean 3M/s or 3/min. Zero is a valid rate; a
// rate above MaxRate is an error.
func ParseRate(s string) (float64, error) {
	bad := func(why error) (float64, error) { return 0, newError("rate", s, why, wantRate) }
	n, unit, err := number(s)
	if err != nil {
		return bad(err)
	}
	if unit == "m" {
		digits := withoutUnit(s, unit)
		return 0, ambiguous("rate", s, digits+"M/s (million a second)", digits+"/min (a minute)")
	}
	multiple, per, slash := strings.Cut(unit, "/")
	by, ok := multiples[strings.ToLower(strings.TrimSpace(multiple))]
	seconds := int64(1)
	if slash && ok {
		seconds, ok = rateTimes[strings.TrimSpace(per)]
	}
	if !ok {
		return bad(notUnit(unit, "rate"))
	}
	n = scaled(n, by)
	n.Quo(n, new(big.Rat).SetInt64(seconds))
	rate, _ := n.Float64()
	if rate > MaxRate {
		return bad(errors.New("is above 1e12 events/s"))
	}
	return rate, nil
}

// FormatRate prints a rate in events/s in three significant digits: "850/s", "50 k/s",
// "1.23 M/s". NaN and infinities print as "n/a".
func FormatRate(perSecond float64) string {
	if math.IsNaN(perSecond) || math.IsInf(perSecond, 0) {
		return "n/a"
	}
	text, unit := short(perSecond)
	if unit == "" {
		return text + "/s"
	}
	return text + " " + unit + "/s"
}
