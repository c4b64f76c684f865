package load

import (
	"math"
	"math/big"
	"math/bits"
)

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
