package payload

import (
	"math"
	"math/bits"
)

// zipf draws 0..n-1 with P(k) proportional to 1/(k+1)^s, for any n and s > 0 (the
// standard library's needs s > 1): from a table where n is small, else by
// rejection-inversion (Hörmann, Derflinger: Rejection-inversion to generate
// variates from monotone discrete distributions, ACM TOMACS 6(3), 1996), which is
// as exact, takes no memory, and nearly always accepts the first trial.
type zipf struct {
	n, s        float64
	first, last float64 // the integral at 1.5, less 1, and at n+0.5
	near        float64 // accept at once when k-x is at most this

	table alias // instead, where n is at most maxAlias
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

// prepare computes what invert needs.
func (z *zipf) prepare() {
	z.first = z.integral(1.5) - 1
	z.last = z.integral(z.n + 0.5)
	z.near = 2 - z.inverse(z.integral(2.5)-z.density(2))
}

// number is a function of u.
func (z *zipf) number(u uint64) uint64 {
	if z.table.cut != nil {
		return z.table.draw(u)
	}
	return z.invert(u)
}

// invert takes further numbers, where a trial is rejected, that follow from u.
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

// density is x^-s.
func (z *zipf) density(x float64) float64 { return math.Exp(-z.s * math.Log(x)) }

// integral is that of the density: (x^(1-s)-1)/(1-s), and log x at s = 1, which
// is its limit; expm1 keeps the digits close to it.
func (z *zipf) integral(x float64) float64 {
	l := math.Log(x)
	t := (1 - z.s) * l
	if math.Abs(t) > 1e-8 {
		return math.Expm1(t) / (1 - z.s)
	}
	return l * (1 + t/2*(1+t/3))
}

// inverse is that of the integral.
func (z *zipf) inverse(y float64) float64 {
	t := max(y*(1-z.s), -1) // rounding may have gone below what an integral can be
	if math.Abs(t) > 1e-8 {
		return math.Exp(math.Log1p(t) / (1 - z.s))
	}
	return math.Exp(y * (1 - t*(0.5-t/3)))
}

// maxAlias is the most outcomes that an alias table is made for: 768 KiB. With
// one, a key costs a tenth of the logarithms of rejection-inversion.
const maxAlias = 1 << 16

// alias draws from any finite distribution in one step (Walker 1977, by the
// construction of Vose 1991): the high word of u*n is a cell, and the low word
// says whether it stands for itself or for its other.
type alias struct {
	cut   []uint64 // of 2^64
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
	// What is left differs from 1 by rounding alone.
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
