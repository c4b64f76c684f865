package payload

import (
	"math"
	"math/bits"
)

// zipf draws 0..n-1 with P(k) proportional to 1/(k+1)^s, for any n and s > 0 (the
// standard library needs s > 1): from a table if n is small, else by
// rejection-inversion (Hörmann, Derflinger: Rejection-inversion to generate variates
// from monotone discrete distributions, ACM TOMACS 6(3), 1996), which is equally exact,
// takes no memory, and nearly always accepts the first trial.
type zipf struct {
	n, s        float64
	first, last float64 // the integral at 1.5, minus 1, and at n+0.5
	near        float64 // accept at once when k-x is at most this

	table alias // used instead if n is at most maxAlias
}

func newZipf(n uint64, s float64) zipf {
	z := zipf{n: float64(n), s: s}
	if n <= maxAlias {
		weights := make([]float64, n)
		for i := range weights {
			weights[i] = z.density(float64(i + 1))
		}
		z.table = newAlias(weights)
		return z
	}
	z.prepare()
	return z
}

// prepare computes the constants of invert.
func (z *zipf) prepare() {
	z.first = z.integral(1.5) - 1
	z.last = z.integral(z.n + 0.5)
	z.near = 2 - z.inverse(z.integral(2.5)-z.density(2))
}

// number returns the key number for the random number u.
func (z *zipf) number(u uint64) uint64 {
	if z.table.cut != nil {
		return z.table.draw(u)
	}
	return z.invert(u)
}

// invert uses further numbers derived from u if a trial is rejected.
func (z *zipf) invert(u uint64) uint64 {
	for trial := uint64(1); ; trial++ {
		y := z.last + unit(u)*(z.first-z.last)
		x := z.inverse(y)
		k := min(max(math.Floor(x+0.5), 1), z.n)
		if k-x <= z.near || y >= z.integral(k+0.5)-z.density(k) {
			return uint64(k) - 1
		}
		u = mix(u, trial)
	}
}

// density returns x^-s.
func (z *zipf) density(x float64) float64 { return math.Exp(-z.s * math.Log(x)) }

// integral returns the integral of the density: (x^(1-s)-1)/(1-s), and its limit log x
// at s = 1; expm1 keeps the precision close to it.
func (z *zipf) integral(x float64) float64 {
	l := math.Log(x)
	t := (1 - z.s) * l
	if math.Abs(t) > 1e-8 {
		return math.Expm1(t) / (1 - z.s)
	}
	return l * (1 + t/2*(1+t/3))
}

// inverse returns the inverse of the integral.
func (z *zipf) inverse(y float64) float64 {
	t := max(y*(1-z.s), -1) // rounding may have gone below the minimum of the integral
	if math.Abs(t) > 1e-8 {
		return math.Exp(math.Log1p(t) / (1 - z.s))
	}
	return math.Exp(y * (1 - t*(0.5-t/3)))
}

// maxAlias is the largest number of outcomes for an alias table: 768 KiB. With a table,
// a key takes a tenth of the time that the logarithms of rejection-inversion take.
const maxAlias = 1 << 16

// alias draws from any finite distribution in one step (Walker 1977, constructed as in
// Vose 1991): the high word of u*n selects a cell, and the low word selects the cell
// itself or its alternative.
type alias struct {
	cut   []uint64 // share of the cell itself, of 2^64
	other []uint32
}

func newAlias(weights []float64) alias {
	n, sum := len(weights), 0.0
	for _, w := range weights {
		sum += w
	}
	a := alias{cut: make([]uint64, n), other: make([]uint32, n)}
	share := make([]float64, n) // of a cell, 1 in the mean
	var small, large []uint32
	put := func(i uint32) {
		if share[i] < 1 {
			small = append(small, i)
		} else {
			large = append(large, i)
		}
	}
	for i, w := range weights {
		share[i] = w / sum * float64(n)
		put(uint32(i))
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small, large = small[:len(small)-1], large[:len(large)-1]
		a.cut[s], a.other[s] = fraction(share[s]), l
		share[l] -= 1 - share[s]
		put(l)
	}
	// The remaining shares differ from 1 only by rounding.
	for _, i := range append(small, large...) {
		a.cut[i], a.other[i] = math.MaxUint64, i
	}
	return a
}

func (a *alias) draw(u uint64) uint64 {
	cell, rest := bits.Mul64(u, uint64(len(a.cut)))
	if rest < a.cut[cell] {
		return cell
	}
	return uint64(a.other[cell])
}
