package load

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// MaxSpan limits the lengths of schedules with changing rates.
const MaxSpan = 100 * 24 * time.Hour

// Ramp returns the schedule whose rate changes linearly from one rate to another, in
// events/s, over a time, and which ends then. One of the rates may be 0. It panics on
// rates that CheckRate refuses and on a time that is not positive or above MaxSpan.
//
// Count(t) = ceil(from*t + (to-from)/(2*over)*t^2), exactly.
func Ramp(from, to float64, over time.Duration) Schedule {
	must(checkRamp(from, to, over))
	return ramp{newCurve([]piece{{over, perNanosecond(from), perNanosecond(to)}}), from, to}
}

type ramp struct {
	*curve
	from, to float64
}

func (r ramp) String() string {
	return fmt.Sprintf("ramp(%s,%s,%v)", rateText(r.from), rateText(r.to), r.End())
}

// Steps returns the schedule of consecutive constant rates, which ends with the last.
// The length of a step is End - Start; only the lengths matter, and the steps follow
// each other from 0. A rate of 0 is a pause. A fraction of an event is carried over
// from one step to the next. It panics on no steps, on rates that CheckRate refuses, on
// lengths that are not positive or above MaxSpan together, and if all rates are 0.
func Steps(steps []Step) Stepped {
	must(checkSteps(steps))
	s := stepped{named: make([]Step, len(steps))}
	pieces := make([]piece, len(steps))
	var at time.Duration
	for i, p := range steps {
		d := p.End - p.Start
		r := perNanosecond(p.Rate)
		pieces[i] = piece{d, r, r}
		s.named[i] = Step{Name: p.Name, Rate: p.Rate, Start: at, End: at + d}
		if p.Name == "" {
			s.named[i].Name = rateName(p.Rate)
		}
		at += d
	}
	s.curve = newCurve(pieces)
	return s
}

type stepped struct {
	*curve
	named []Step
}

func (s stepped) Steps() []Step { return append([]Step(nil), s.named...) }

func (s stepped) String() string {
	var parts []string
	for _, p := range s.named {
		parts = append(parts, fmt.Sprintf("%s:%v", rateText(p.Rate), p.End-p.Start))
	}
	return "steps(" + strings.Join(parts, ",") + ")"
}

// rateName returns a rate as it is written in the names of steps, such as "20,000/s".
func rateName(rate float64) string {
	s := strconv.FormatFloat(rate, 'f', -1, 64)
	whole, frac, dotted := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dotted {
		whole += "." + frac
	}
	return whole + "/s"
}

func checkRamp(from, to float64, over time.Duration) error {
	if err := checkSpan(over); err != nil {
		return fmt.Errorf("ramp: %w", err)
	}
	if from == 0 && to == 0 {
		return fmt.Errorf("ramp: both rates are 0: nothing would ever be due")
	}
	for _, r := range []float64{from, to} {
		if r == 0 && !math.Signbit(r) {
			continue
		}
		if err := CheckRate(r); err != nil {
			return fmt.Errorf("ramp: %w", err)
		}
	}
	return nil
}

func checkSteps(steps []Step) error {
	if len(steps) == 0 {
		return fmt.Errorf("steps: there are none")
	}
	var total time.Duration
	zero := true
	for i, s := range steps {
		d := s.End - s.Start
		if err := checkSpan(d); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if total += d; total > MaxSpan {
			return fmt.Errorf("steps: together longer than %d days", MaxSpan/(24*time.Hour))
		}
		if s.Rate == 0 {
			continue
		}
		zero = false
		if err := CheckRate(s.Rate); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	if zero {
		return fmt.Errorf("steps: all rates are 0: nothing would ever be due")
	}
	return nil
}

func checkSpan(d time.Duration) error {
	switch {
	case d <= 0:
		return fmt.Errorf("the time %v is not above 0", d)
	case d > MaxSpan:
		return fmt.Errorf("the time %v is longer than %d days", d, MaxSpan/(24*time.Hour))
	}
	return nil
}

func must(err error) {
	if err != nil {
		panic("load: " + err.Error())
	}
}

func perNanosecond(rate float64) *big.Rat {
	num, den := fraction(rate)
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(num), new(big.Int).SetUint64(den))
}

// Burst returns the schedule of n events due at once, in intervals of the given length,
// the first at 0. It never ends. It panics if n is 0 or the interval is not positive or
// above MaxSpan.
//
// Due(k) = floor(k/n)*every, Count(t) = ceil(t/every)*n.
func Burst(n uint64, every time.Duration) Schedule {
	must(checkBurst(n, every))
	return burst{n, uint64(every)}
}

func checkBurst(n uint64, every time.Duration) error {
	if n == 0 {
		return fmt.Errorf("burst: a burst of 0 events: nothing would ever be due")
	}
	if err := checkSpan(every); err != nil {
		return fmt.Errorf("burst: %w", err)
	}
	if rate := float64(n) / every.Seconds(); rate > MaxRate {
		return fmt.Errorf("burst: %d events every %v is too much: at most %v/s", n, every, float64(MaxRate))
	}
	return nil
}

type burst struct{ n, every uint64 }

func (b burst) Due(k uint64) time.Duration {
	hi, lo := bits.Mul64(k/b.n, b.every)
	if hi > 0 || lo >= uint64(Never) {
		return Never
	}
	return time.Duration(lo)
}

func (b burst) Count(t time.Duration) uint64 {
	if t <= 0 {
		return 0
	}
	hi, lo := bits.Mul64((uint64(t)-1)/b.every+1, b.n)
	if hi > 0 {
		return math.MaxUint64
	}
	return lo
}

// Rate returns the mean over a burst and the quiet time after it.
func (b burst) Rate(time.Duration) float64 {
	return float64(b.n) / (float64(b.every) / 1e9)
}

func (b burst) End() time.Duration { return Never }

func (b burst) String() string { return fmt.Sprintf("burst(%d,%v)", b.n, time.Duration(b.every)) }
