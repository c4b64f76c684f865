package picture

import (
	"math"
)

// A scale maps numbers of an axis to pixels.
type scale struct {
	axis   Axis
	lo, hi float64 // of the axis
	a, b   float64 // pixels
}

// at returns the pixel of v. Values below a logarithmic axis are at its start, so
// that a zero is not a gap.
func (s scale) at(v float64) float64 {
	lo, hi := s.lo, s.hi
	if s.axis.Log {
		if !(v > lo) {
			v = lo
		}
		v, lo, hi = math.Log(v), math.Log(lo), math.Log(hi)
	}
	return s.a + (v-lo)/(hi-lo)*(s.b-s.a)
}

// A tick is a mark of an axis.
type tick struct {
	at   float64
	text string // "" for a mark without text
}

// domain is the range of an axis for numbers from lo to hi.
func domain(a Axis, lo, hi float64) (float64, float64) {
	switch {
	case a.Labels != nil:
		return -0.5, float64(len(a.Labels)) - 0.5
	case a.Max > a.Min:
		return a.Min, a.Max
	case !(hi >= lo):
		lo, hi = 0, 1
		if a.Log {
			lo = 0.1
		}
	case a.Log:
		if hi/lo < 1.5 {
			lo, hi = lo/1.5, hi*1.5
		}
		return lo / 1.08, hi * 1.08
	}
	if a.Zero {
		lo, hi = min(lo, 0), max(hi, 0)
	}
	if hi == lo {
		d := math.Abs(hi) * 0.1
		if d == 0 {
			d = 1
		}
		if !a.Zero || lo < 0 {
			lo -= d
		}
		hi += d
	}
	if a.Zero || a.Unit != Seconds {
		hi += (hi - lo) * 0.06
		if lo < 0 || !a.Zero {
			lo -= (hi - lo) * 0.06
		}
	}
	return lo, hi
}

// ticks are about n marks between lo and hi.
func ticks(a Axis, lo, hi float64, n int) []tick {
	n = max(n, 2)
	switch {
	case a.Labels != nil:
		return namedTicks(a, lo, hi, n)
	case a.Log && a.Unit == Percentile:
		return percentileTicks(lo, hi, n)
	case a.Log:
		return logTicks(a, lo, hi, n)
	}
	step := stepOf(a.Unit, (hi-lo)/float64(n))
	if !(step > 0) || math.IsInf(step, 0) {
		return nil
	}
	var out []tick
	for k := math.Ceil(lo / step); k*step <= hi && len(out) < 100; k++ {
		out = append(out, tick{k * step, tickText(k*step, step, a.Unit)})
	}
	return out
}

func namedTicks(a Axis, lo, hi float64, n int) []tick {
	every := max(1, (len(a.Labels)+n-1)/n)
	var out []tick
	for i := 0; i < len(a.Labels); i += every {
		if v := float64(i); v >= lo && v <= hi {
			out = append(out, tick{v, a.Labels[i]})
		}
	}
	return out
}

// clockSteps are the steps of a clock, in seconds.
var clockSteps = []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400}

// stepOf is the round number at or above raw: 1, 2 or 5 times a power of ten; for
// bytes a power of two; for seconds a step of a clock.
func stepOf(u Unit, raw float64) float64 {
	if !(raw > 0) {
		return 0
	}
	switch {
	case (u == Bytes || u == BytesPerS) && raw > 1:
		return math.Pow(2, math.Ceil(math.Log2(raw)))
	case u == Seconds && raw > 0.5:
		for _, s := range clockSteps {
			if s >= raw {
				return s
			}
		}
		return math.Ceil(raw/86400) * 86400
	}
	ten := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if m*ten >= raw*(1-1e-9) {
			return m * ten
		}
	}
	return 10 * ten
}

// tickText is the text of a mark.
func tickText(v, step float64, u Unit) string {
	if math.Abs(v) < step*1e-6 {
		v = 0
	}
	if v == 0 {
		return "0"
	}
	return Format(v, shortUnit(u))
}

// shortUnit is the unit after a mark's number. External units may be long and
// appear only once, next to the axis.
func shortUnit(u Unit) Unit {
	switch u {
	case Seconds, Micros, PerSecond, Events, Bytes, BytesPerS, Share, Percentile:
		return u
	}
	return Plain
}

func logTicks(a Axis, lo, hi float64, n int) []tick {
	first, last := math.Floor(math.Log10(lo)), math.Ceil(math.Log10(hi))
	decades := math.Log10(hi / lo)
	every := max(1, math.Ceil(decades/float64(n)))
	named := map[float64]bool{1: true}
	switch {
	case decades < 1.2:
		named = map[float64]bool{1: true, 2: true, 3: true, 5: true, 7: true}
	case decades*3 <= float64(n)+1:
		named = map[float64]bool{1: true, 2: true, 5: true}
	case decades*2 <= float64(n)+1:
		named = map[float64]bool{1: true, 3: true}
	}
	var out []tick
	for k := first; k <= last; k++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, k)
			if v < lo*(1-1e-9) || v > hi*(1+1e-9) {
				continue
			}
			t := tick{at: v}
			if named[m] && (m > 1 || math.Mod(k-first, every) == 0) {
				t.text = Format(v, shortUnit(a.Unit))
			}
			if t.text != "" || every == 1 {
				out = append(out, t)
			}
		}
	}
	return out
}

func percentileTicks(lo, hi float64, n int) []tick {
	var out []tick
	if lo <= 1 {
		out = append(out, tick{1, "p0"})
	}
	if n > 4 && hi >= 2 {
		out = append(out, tick{2, "p50"})
	}
	every := max(1, math.Ceil(math.Log10(hi)/float64(n)))
	for k := 1.0; k <= math.Log10(hi)+1e-9; k += every {
		out = append(out, tick{math.Pow(10, k), percentile(math.Pow(10, k))})
	}
	return out
}
