package load

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"time"
)

// A Schedule defines when events are due. Event n (from 0) is due Due(n) after the
// schedule's start; Due never decreases. Count(t) is its inverse: the number of events
// due before t, so that a span [0, t) of a constant rate r contains exactly ceil(r*t)
// events. Events after the end of a finite schedule are due at Never. Implementations
// are safe for concurrent use.
type Schedule interface {
	Due(n uint64) time.Duration
	Count(t time.Duration) uint64
	// Rate returns the requested rate at t in events/s, for display and for warm-up.
	Rate(t time.Duration) float64
	// End returns when the schedule ends, Never if it does not.
	End() time.Duration
}

// Never is later than any event.
const Never = time.Duration(1<<63 - 1)

// A Stepped schedule names the spans that are reported separately: those over which its
// rate is constant, or which are meant as one piece.
type Stepped interface {
	Schedule
	Steps() []Step
}

// A Step is one span of a schedule.
type Step struct {
	Name       string // such as "20,000/s"
	Rate       float64
	Start, End time.Duration
}

// A Partitioner maps each event of a schedule to a stream. Every event belongs to
// exactly one stream. Implementations are safe for concurrent use.
type Partitioner interface {
	Streams() int
	// Event returns the number of the k-th event (from 0) of stream s.
	Event(s int32, k uint64) uint64
	// Before returns how many of the events 0..n-1 belong to stream s.
	Before(s int32, n uint64) uint64
}

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

// An int256 is an integer modulo 2^256, lowest limb first: large enough for the
// products in the schedules' arithmetic, without allocation. Negative numbers are two's
// complement.
type int256 [4]uint64

func int256Of(x *big.Int) int256 {
	m := new(big.Int).Mod(x, new(big.Int).Lsh(big.NewInt(1), 256))
	var w int256
	mask := new(big.Int).SetUint64(math.MaxUint64)
	for i := range w {
		w[i] = new(big.Int).And(m, mask).Uint64()
		m.Rsh(m, 64)
	}
	return w
}

// big returns a, taken as unsigned.
func (a int256) big() *big.Int {
	x := new(big.Int)
	for i := len(a) - 1; i >= 0; i-- {
		x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(a[i]))
	}
	return x
}

func (a int256) plus(b int256) (c int256) {
	var carry uint64
	c[0], carry = bits.Add64(a[0], b[0], 0)
	c[1], carry = bits.Add64(a[1], b[1], carry)
	c[2], carry = bits.Add64(a[2], b[2], carry)
	c[3], _ = bits.Add64(a[3], b[3], carry)
	return c
}

func (a int256) minus(b int256) (c int256) {
	var borrow uint64
	c[0], borrow = bits.Sub64(a[0], b[0], 0)
	c[1], borrow = bits.Sub64(a[1], b[1], borrow)
	c[2], borrow = bits.Sub64(a[2], b[2], borrow)
	c[3], _ = bits.Sub64(a[3], b[3], borrow)
	return c
}

// times is correct for negative a, too, because it wraps like two's complement.
func (a int256) times(x uint64) (c int256) {
	h0, l0 := bits.Mul64(a[0], x)
	h1, l1 := bits.Mul64(a[1], x)
	h2, l2 := bits.Mul64(a[2], x)
	var carry uint64
	c[0] = l0
	c[1], carry = bits.Add64(h0, l1, 0)
	c[2], carry = bits.Add64(h1, l2, carry)
	c[3], _ = bits.Add64(h2, a[3]*x, carry)
	return c
}

func (a int256) negative() bool { return a[3]>>63 != 0 }

func (a int256) zero() bool { return a[0]|a[1]|a[2]|a[3] == 0 }

// positive reports whether a, taken as signed, is above zero.
func (a int256) positive() bool { return !a.negative() && !a.zero() }

// atMost reports whether a <= b, both taken as signed and less than 2^255 apart.
func (a int256) atMost(b int256) bool { return !b.minus(a).negative() }

// float returns an approximation of a, taken as signed.
func (a int256) float() float64 {
	if a.negative() {
		return -int256{}.minus(a).float()
	}
	const limb = 1 << 64
	return ((float64(a[3])*limb+float64(a[2]))*limb+float64(a[1]))*limb + float64(a[0])
}
