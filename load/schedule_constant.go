package load

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"time"
)

// MaxRate and MinRate limit the rates of schedules, in events/s: a thousand events a
// nanosecond, and one event in eleven days.
const (
	MaxRate = 1e12
	MinRate = 1e-6
)

// CheckRate returns an error, worded for users, if no schedule can have the rate.
func CheckRate(rate float64) error {
	switch {
	case math.IsNaN(rate):
		return fmt.Errorf("the rate is not a number: a rate is above 0, such as 50k/s")
	case rate <= 0:
		return fmt.Errorf("the rate %v/s is not above 0: want a rate such as 50k/s or 0.5/s", rate)
	case rate > MaxRate:
		return fmt.Errorf("the rate %v/s is too high: at most %v/s", rate, MaxRate)
	case rate < MinRate:
		return fmt.Errorf("the rate %v/s is too low: at least %v/s", rate, MinRate)
	}
	return nil
}

// Constant returns the schedule of rate events/s that never ends. It panics if
// CheckRate refuses the rate.
//
// With rate = num/den events a nanosecond, event n is due at n*den/num, of
// which Due gives the floor. For a whole number of nanoseconds t,
//
//	floor(n*den/num) < t  <=>  n*den/num < t  <=>  n < t*num/den,
//
// so that Count(t) = ceil(t*num/den) is its exact inverse. Both are computed with 128
// bits from n or t alone: no sum accumulates, so nothing drifts.
func Constant(rate float64) Schedule {
	if err := CheckRate(rate); err != nil {
		panic("load: " + err.Error())
	}
	num, den := fraction(rate)
	return constant{rate: rate, num: num, den: den}
}

type constant struct {
	rate     float64
	num, den uint64 // events a nanosecond
}

func (c constant) Due(n uint64) time.Duration {
	hi, lo := bits.Mul64(n, c.den)
	if hi >= c.num {
		return Never
	}
	q, _ := bits.Div64(hi, lo, c.num)
	if q >= uint64(Never) {
		return Never
	}
	return time.Duration(q)
}

func (c constant) Count(t time.Duration) uint64 {
	if t <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(t), c.num)
	if hi >= c.den {
		return math.MaxUint64
	}
	q, r := bits.Div64(hi, lo, c.den)
	if r > 0 && q < math.MaxUint64 {
		q++
	}
	return q
}

func (c constant) Rate(time.Duration) float64 { return c.rate }

func (c constant) End() time.Duration { return Never }

func (c constant) String() string { return "constant(" + rateText(c.rate) + ")" }

// rateText returns a rate as it is written in shapes, from which it can be parsed
// exactly.
func rateText(rate float64) string { return strconv.FormatFloat(rate, 'f', -1, 64) + "/s" }

// fraction returns a rate in events/s as a fraction in events a nanosecond, both parts
// below 2^63. It takes the simplest fraction that rounds to the same float64, so that a
// rate entered as 0.1/s is exactly one event in ten seconds, and 50/m exactly five in
// six. The float64 itself differs slightly, and after hours the count would be one
// event off.
func fraction(rate float64) (num, den uint64) {
	if rate == 0 {
		return 0, 1
	}
	r := new(big.Rat).SetFloat64(rate)
	// Half the distance to the neighbouring float64: everything closer rounds to rate.
	// If even the simplest of those fractions is too long, a wider interval contains a
	// shorter one, which is still within 2^-33 of an event a second.
	width := new(big.Rat).SetFloat64(math.Nextafter(rate, math.Inf(1)))
	width.Sub(width, r).Mul(width, big.NewRat(1, 2))
	for {
		lo, hi := new(big.Rat).Sub(r, width), new(big.Rat).Add(r, width)
		f := simplest(lo, hi)
		f.Mul(f, big.NewRat(1, int64(time.Second)))
		if f.Num().IsInt64() && f.Denom().IsInt64() {
			return f.Num().Uint64(), f.Denom().Uint64()
		}
		width.Add(width, width)
	}
}

// simplest returns the fraction with the smallest denominator in [lo, hi], by continued
// fractions. 0 < lo < hi.
func simplest(lo, hi *big.Rat) *big.Rat {
	whole := new(big.Int).Quo(lo.Num(), lo.Denom())
	fl := new(big.Rat).SetInt(whole)
	if fl.Cmp(lo) == 0 {
		return fl
	}
	next := new(big.Rat).SetInt(whole.Add(whole, big.NewInt(1)))
	if next.Cmp(hi) <= 0 {
		return next
	}
	a := new(big.Rat).Sub(hi, fl)
	b := new(big.Rat).Sub(lo, fl)
	f := simplest(a.Inv(a), b.Inv(b))
	return f.Inv(f).Add(f, fl)
}
