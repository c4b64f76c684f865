package load

import (
	"math"
	"math/big"
	"time"
)

// A segment is a span over which the rate changes linearly, from r0 to r1
// events a nanosecond in d nanoseconds, after f events of earlier segments
// (f = n + c/m, n an integer). The events due before x nanoseconds into it are
//
//	F(x) = f + r0*x + (r1-r0)/(2d)*x^2 = n + (c + a*x + b*x^2)/m
//
// with integers a, b, c and m, so that Count(x) = n + ceil((c+a*x+b*x^2)/m) is exact,
// and event n+k is due at the last nanosecond x with c + a*x + b*x^2 <= k*m: the floor
// of the moment when F passes n+k. Due is therefore the exact inverse of Count, and no
// event is due while the rate is zero. Floating point decides only where its error
// cannot matter, which is nearly always; otherwise integers do.
type segment struct {
	start, d   uint64 // nanoseconds
	n          uint64 // complete events before it
	c, a, b, m int256
	cf, af, bf float64 // c/m, a/m, b/m
	mf         float64 // m
	r0, r1     float64 // events/s
}

// mBits limits m, so that m times any event number fits into the 255 bits of an int256.
const mBits = 190

// newSegment takes the rates in events a nanosecond and the exact number of events
// before it. It returns the number of events before its end, exact or rounded up where
// m would otherwise not fit (by less than 2^-60 of an event). m is a multiple of each
// of the factors.
func newSegment(start, d uint64, f, r0, r1 *big.Rat, factors ...*big.Int) (segment, *big.Rat) {
	dr := new(big.Rat).SetInt(new(big.Int).SetUint64(d))
	a := r0
	b := new(big.Rat).Sub(r1, r0)
	b.Quo(b, new(big.Rat).Add(dr, dr))

	n := new(big.Int).Quo(f.Num(), f.Denom())
	c := new(big.Rat).Sub(f, new(big.Rat).SetInt(n))
	base := lcm(a.Denom(), b.Denom())
	for _, f := range factors {
		base = lcm(base, f)
	}
	m := lcm(base, c.Denom())
	if m.BitLen() > mBits {
		// The fractions of earlier segments have no small common denominator with this
		// one. Rounding up prevents Count from falling at the joint.
		m = base
		for m.BitLen() < 64 {
			m.Lsh(m, 1)
		}
		up := new(big.Int).Mul(c.Num(), m)
		up.Add(up, new(big.Int).Sub(c.Denom(), big.NewInt(1)))
		up.Quo(up, c.Denom())
		c.SetFrac(up, m)
	}
	over := func(r *big.Rat) *big.Int { // r*m, an integer
		x := new(big.Int).Mul(r.Num(), m)
		return x.Quo(x, r.Denom())
	}
	s := segment{
		start: start, d: d, n: n.Uint64(),
		c: int256Of(over(c)), a: int256Of(over(a)), b: int256Of(over(b)), m: int256Of(m),
	}
	s.cf, _ = c.Float64()
	s.af, _ = a.Float64()
	s.bf, _ = b.Float64()
	s.mf = s.m.float()
	perSecond := new(big.Rat).SetInt64(1e9)
	s.r0, _ = new(big.Rat).Mul(r0, perSecond).Float64()
	s.r1, _ = new(big.Rat).Mul(r1, perSecond).Float64()

	end := new(big.Rat).Add(r0, r1) // f + d*(r0+r1)/2
	end.Mul(end, dr).Mul(end, big.NewRat(1, 2))
	return s, end.Add(end, f)
}

func lcm(a, b *big.Int) *big.Int {
	g := new(big.Int).GCD(nil, nil, a, b)
	return g.Mul(new(big.Int).Quo(a, g), b)
}

// numerator returns c + a*x + b*x^2, plus the extra part of an event in m-ths.
func (s *segment) numerator(x uint64, extra int256) int256 {
	return s.b.times(x).plus(s.a).times(x).plus(s.c).plus(extra)
}

// slack is more than the sum of all rounding errors in the sums below, as a share of
// the summands: fewer than 32 errors of 2^-53 each.
const slack = 1.0 / (1 << 48)

// part returns extra in events.
func (s *segment) part(extra int256) float64 {
	if extra.zero() {
		return 0
	}
	return extra.float() / s.mf
}

// count returns how many events beyond n are due before x.
func (s *segment) count(x uint64, extra int256) uint64 {
	k, known := s.countFast(x, extra)
	switch {
	case known == sure:
		return k
	case known == unsure:
		return s.countExact(x, extra)
	case s.numerator(x, extra).atMost(s.m.times(k)):
		return k
	}
	return k + 1
}

// What floating point determined: the result; that the result is the number given or
// one of its neighbours, since the value is next to an integer; or neither.
const (
	unsure = iota
	sure
	near
)

// countFast estimates count. near: the result is k or k+1.
func (s *segment) countFast(x uint64, extra int256) (k uint64, known int) {
	c, at := s.cf+s.part(extra), float64(x)
	v := c + at*(s.af+s.bf*at)
	off := slack * (c + at*(s.af+math.Abs(s.bf)*at))
	up := math.Ceil(v)
	switch {
	case v+off <= up && v-off > up-1:
		return uint64(up), sure
	case off < 0.25:
		return uint64(math.Floor(v + 0.5)), near
	}
	return 0, unsure
}

func (s *segment) countExact(x uint64, extra int256) uint64 {
	v := s.numerator(x, extra)
	k := uint64(max(0, v.float()/s.mf))
	rest := v.minus(s.m.times(k)) // find the k with -m < rest <= 0
	for range 4 {
		// The estimate has 53 correct bits, so a large k may be off by some events.
		far := rest.float() / s.mf
		if math.Abs(far) < 2 {
			break
		}
		k += uint64(int64(far))
		rest = v.minus(s.m.times(k))
	}
	for rest.positive() {
		k++
		rest = rest.minus(s.m)
	}
	for k > 0 {
		r := rest.plus(s.m)
		if r.positive() {
			break
		}
		k--
		rest = r
	}
	return k
}

// due returns the last x up to d-1 before which no more than k events beyond n are due.
// The caller has made sure that this is true for x = 0.
func (s *segment) due(k uint64, extra int256) uint64 {
	x, known := s.dueFast(k, extra)
	switch {
	case known == sure:
		return x
	case known == unsure:
		return s.dueExact(k, extra)
	case s.numerator(x, extra).atMost(s.m.times(k)):
		return x
	}
	return x - 1
}

// dueFast estimates due. near: the result is x or x-1. The error of x is the error of F
// divided by the rate there.
func (s *segment) dueFast(k uint64, extra int256) (x uint64, known int) {
	part := s.part(extra)
	want := float64(k) - s.cf - part
	if !(want >= 0) {
		return 0, unsure
	}
	b := math.Abs(s.bf)
	// Written so that cancellation occurs only under the root, where the error bound
	// includes it. The root is the rate at x.
	rate := math.Sqrt(s.af*s.af + 4*s.bf*want)
	root := s.af + rate
	at := 2 * want / root
	off := slack * ((at*(s.af+b*at)+float64(k)+s.cf+part)/rate + at*(s.af*s.af+4*b*want)/(rate*root) + at)
	if !(4*b < rate) { // the rate changes within a nanosecond
		return 0, unsure
	}
	whole, last := math.Floor(at), float64(s.d-1)
	switch {
	case at-off >= last:
		return s.d - 1, sure
	case at-off >= whole && at+off < whole+1:
		return uint64(whole), sure
	case off < 0.25 && at >= 0.5 && at < last-1:
		return uint64(math.Floor(at + 0.5)), near
	}
	return 0, unsure
}

func (s *segment) dueExact(k uint64, extra int256) uint64 {
	bound := s.m.times(k)
	fits := func(x uint64) bool { return s.numerator(x, extra).atMost(bound) }

	// The root of bf*x^2 + af*x = want, written so that no cancellation occurs.
	want := float64(k) - s.cf - s.part(extra)
	last := s.d - 1
	x := last
	if root := s.af + math.Sqrt(max(0, s.af*s.af+4*s.bf*want)); root > 0 {
		if g := 2 * want / root; g < float64(last) {
			x = uint64(max(0, g))
		}
	}
	// lo fits; hi does not, or is d.
	lo, hi := uint64(0), s.d
	if fits(x) {
		lo = x
		for step := uint64(1); lo+step < s.d; step *= 2 {
			if !fits(lo + step) {
				hi = lo + step
				break
			}
			lo += step
		}
	} else {
		hi = x
		for step := uint64(1); step < hi; step *= 2 {
			if fits(hi - step) {
				lo = hi - step
				break
			}
			hi -= step
		}
	}
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if fits(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// rate returns the rate at x in events/s.
func (s *segment) rate(x uint64) float64 {
	return s.r0 + (s.r1-s.r0)*float64(x)/float64(s.d)
}

// A curve is a sequence of segments. It ends with the last one.
type curve struct {
	segments []segment
	firsts   []uint64 // Count at the start of each segment
	length   uint64   // nanoseconds
	total    uint64   // events
	exact    *big.Rat // total before rounding up
}

// A piece describes a segment of a curve: its length, and its rates in events a
// nanosecond.
type piece struct {
	d      time.Duration
	r0, r1 *big.Rat
}

func newCurve(pieces []piece) *curve {
	c := &curve{exact: new(big.Rat)}
	for _, p := range pieces {
		var s segment
		s, c.exact = newSegment(c.length, uint64(p.d), c.exact, p.r0, p.r1)
		c.add(s)
	}
	c.total = ceil(c.exact)
	return c
}

func (c *curve) add(s segment) {
	c.segments = append(c.segments, s)
	c.firsts = append(c.firsts, s.n+s.count(0, int256{}))
	c.length = s.start + s.d
}

func ceil(r *big.Rat) uint64 {
	n := new(big.Int).Add(r.Num(), new(big.Int).Sub(r.Denom(), big.NewInt(1)))
	n.Quo(n, r.Denom())
	if !n.IsUint64() {
		return math.MaxUint64
	}
	return n.Uint64()
}

// at returns the segment that contains x, which is before the end.
func (c *curve) at(x uint64) *segment {
	return &c.segments[c.index(x)]
}

func (c *curve) index(x uint64) int {
	if len(c.segments) == 1 {
		return 0
	}
	lo, hi := 0, len(c.segments) // like sort.Search, without a call for each step
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) / 2); c.segments[mid].start > x {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo
}

// segmentOf returns the last segment before whose start no more than n events are due.
func (c *curve) segmentOf(n uint64) int {
	lo, hi := 0, len(c.firsts)
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) / 2); c.firsts[mid] > n {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo
}

func (c *curve) Count(t time.Duration) uint64 {
	if t <= 0 {
		return 0
	}
	if uint64(t) >= c.length {
		return c.total
	}
	s := c.at(uint64(t))
	return s.n + s.count(uint64(t)-s.start, int256{})
}

func (c *curve) Due(n uint64) time.Duration {
	if n >= c.total {
		return Never
	}
	s := &c.segments[c.segmentOf(n)]
	return time.Duration(s.start + s.due(n-s.n, int256{}))
}

func (c *curve) Rate(t time.Duration) float64 {
	if t < 0 || uint64(t) >= c.length {
		return 0
	}
	s := c.at(uint64(t))
	return s.rate(uint64(t) - s.start)
}

func (c *curve) End() time.Duration { return time.Duration(c.length) }
