package load

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"time"
)

// Sine returns the schedule whose rate is mean + amplitude*sin(2 pi t/period), in
// events/s, and which never ends. It panics if CheckRate refuses the mean, the
// amplitude is negative or above the mean, or the period is not between a millisecond
// and a week.
//
// The events due before t are ceil(F(t)) of
//
//	F(t) = mean*t + amplitude*period/(2 pi) * (1 - cos(2 pi t/period)).
//
// Complete periods have exactly mean*period events each. Within one, the rate is
// piecewise linear between up to 2^14 nodes whose counts equal those of F to 2^-32.
// Count differs from F by at most 0.02 events, except at extreme rates. By
// construction, Count never falls and Due is its exact inverse, which the
// floating-point cosine does not guarantee where the rate is near zero.
func Sine(mean, amplitude float64, period time.Duration) Schedule {
	must(checkSine(mean, amplitude, period))
	return newSine(mean, amplitude, period)
}

const week = 7 * 24 * time.Hour

func checkSine(mean, amplitude float64, period time.Duration) error {
	if err := CheckRate(mean); err != nil {
		return fmt.Errorf("sine: %w", err)
	}
	if !(amplitude >= 0 && amplitude <= mean) {
		return fmt.Errorf("sine: the amplitude %v/s is not between 0 and the mean %v/s: a rate cannot fall below 0", amplitude, mean)
	}
	if period < time.Millisecond || period > week {
		return fmt.Errorf("sine: the period %v is not between 1ms and 168h", period)
	}
	return nil
}

type sine struct {
	mean, amplitude float64
	period          uint64
	curve           *curve   // the first period
	parts           []int256 // m/den of each segment

	// Events a period: whole + part/den.
	whole, part, den uint64
}

func newSine(mean, amplitude float64, period time.Duration) *sine {
	s := &sine{mean: mean, amplitude: amplitude, period: uint64(period)}
	perPeriod := new(big.Rat).Mul(perNanosecond(mean), new(big.Rat).SetInt64(int64(period)))
	whole, part := new(big.Int).QuoRem(perPeriod.Num(), perPeriod.Denom(), new(big.Int))
	s.whole, s.part, s.den = whole.Uint64(), part.Uint64(), perPeriod.Denom().Uint64()

	// A line with the right mean differs from a curve with rate r by at most
	// r"*h^3*sqrt(3)/216 events over a step of h: for a period P in n steps,
	// 0.317*amplitude*P/n^3.
	const most = 0.02
	n := math.Cbrt(0.317 * amplitude * period.Seconds() / most)
	nodes := uint64(min(max(n, 16), 1<<14))

	node := func(i uint64) (x uint64, f *big.Rat, rate float64) {
		hi, lo := bits.Mul64(i, s.period)
		x, _ = bits.Div64(hi, lo, nodes)
		f = new(big.Rat).Mul(perNanosecond(mean), new(big.Rat).SetInt(new(big.Int).SetUint64(x)))
		sin, cos := math.Sincos(2 * math.Pi * float64(x) / float64(s.period))
		if i < nodes { // cos may differ slightly from 1 at the end
			swing := amplitude * period.Seconds() / (2 * math.Pi) * (1 - cos)
			parts, _ := big.NewFloat(swing * (1 << 32)).Int(nil) // of an event; a uint64 may be too small
			f.Add(f, new(big.Rat).SetFrac(parts, new(big.Int).Lsh(big.NewInt(1), 32)))
		}
		return x, f, (mean + amplitude*sin) / 1e9
	}
	s.curve = &curve{exact: perPeriod, total: ceil(perPeriod)}
	x0, f0, rate0 := node(0)
	den := new(big.Int).SetUint64(s.den)
	for i := uint64(1); i <= nodes; i++ {
		x1, f1, rate1 := node(i)
		if i < nodes && f1.Cmp(f0) < 0 {
			f1 = f0 // prevent a fall by a rounding error
		}
		r0, r1 := line(f0, f1, x1-x0, rate1-rate0)
		g, _ := newSegment(x0, x1-x0, f0, r0, r1, den)
		s.curve.add(g)
		s.parts = append(s.parts, int256Of(new(big.Int).Quo(g.m.big(), den)))
		x0, f0, rate0 = x1, f1, rate1
	}
	return s
}

// line returns the rates at both ends of a straight line, neither of them negative,
// that contributes f1-f0 events in d and rises by about rise.
func line(f0, f1 *big.Rat, d uint64, rise float64) (r0, r1 *big.Rat) {
	mean := new(big.Rat).Sub(f1, f0)
	mean.Quo(mean, new(big.Rat).SetInt(new(big.Int).SetUint64(d)))
	// r0 = mean - rise/2 as a share of 2*mean, in steps that keep the denominators
	// small.
	m, _ := mean.Float64()
	share := 0.5
	if m > 0 {
		share = min(max(0.5-rise/(4*m), 0), 1)
	}
	r0 = new(big.Rat).Mul(mean, big.NewRat(int64(math.Round(share*(1<<24))), 1<<23))
	r1 = new(big.Rat).Add(mean, mean)
	return r0, r1.Sub(r1, r0)
}

// before returns the events of k periods: the integer, and the fraction in den-ths.
func (s *sine) before(k uint64) (whole, part uint64) {
	hi, lo := bits.Mul64(k, s.part)
	q, part := bits.Div64(hi, lo, s.den)
	return k*s.whole + q, part
}

// index finds the segment of x, a position in a period: all segments have the same
// length, apart from rounding.
func (s *sine) index(x uint64) int {
	hi, lo := bits.Mul64(x, uint64(len(s.curve.segments)))
	q, _ := bits.Div64(hi, lo, s.period)
	i := int(q)
	if i+1 < len(s.curve.segments) && s.curve.segments[i+1].start <= x {
		i++
	}
	return i
}

func (s *sine) Count(t time.Duration) uint64 {
	if t <= 0 {
		return 0
	}
	k, x := uint64(t)/s.period, uint64(t)%s.period
	whole, part := s.before(k)
	i := s.index(x)
	g := &s.curve.segments[i]
	return whole + g.n + g.count(x-g.start, s.parts[i].times(part))
}

func (s *sine) Due(n uint64) time.Duration {
	// The last period that begins with no more than n events due before it.
	begins := func(k uint64) bool {
		whole, part := s.before(k)
		return whole < n || whole == n && part == 0
	}
	most := uint64(Never) / s.period
	k := uint64(min(float64(n)/(float64(s.whole)+float64(s.part)/float64(s.den)), float64(most)))
	for k > 0 && !begins(k) {
		k--
	}
	for k <= most && begins(k+1) {
		k++
	}
	if k > most {
		return Never
	}
	whole, part := s.before(k)
	n -= whole
	i := s.curve.segmentOf(n)
	// With the fraction of an event left over from earlier periods, segments may begin
	// with one event more.
	for part > 0 && i > 0 && s.curve.segments[i].n+s.curve.segments[i].count(0, s.parts[i].times(part)) > n {
		i--
	}
	g := &s.curve.segments[i]
	x := k*s.period + g.start + g.due(n-g.n, s.parts[i].times(part))
	if x >= uint64(Never) {
		return Never
	}
	return time.Duration(x)
}

func (s *sine) Rate(t time.Duration) float64 {
	if t < 0 {
		return 0
	}
	x := float64(uint64(t)%s.period) / float64(s.period)
	return s.mean + s.amplitude*math.Sin(2*math.Pi*x)
}

func (s *sine) End() time.Duration { return Never }

func (s *sine) String() string {
	return fmt.Sprintf("sine(%s,%s,%v)", rateText(s.mean), rateText(s.amplitude), time.Duration(s.period))
}
