// Package crc joins CRC-32 checksums: the sum of bytes A followed by bytes B is
// had from both sums without reading either again. It is what makes stamping a
// batch or a body cheap, whose few bytes that change stand among many that do
// not.
//
// A CRC is linear: without the inversions before and after,
//
//	sum(A ++ B) = sum(A) * x^(8*len(B)) + sum(B)   in GF(2)[x] modulo the polynomial
//
// and with them the same holds of whole checksums (zlib's crc32_combine; Adler,
// https://stackoverflow.com/a/23126768).
package crc

import (
	"hash/crc32"
	"math/bits"
)

// A Field is the arithmetic of one polynomial. It does not change and may be
// used by any goroutine.
type Field struct {
	polynomial uint32     // reflected: the highest power is the lowest bit
	carries    [16]uint32 // carries[n] is what the bits n, shifted out by x^4, come back as
	powers     [64]uint32 // powers[k] is x^(2^k)
}

// The polynomials in use: gzip's, and that of Kafka's batches.
var (
	IEEE       = newField(crc32.IEEE)
	Castagnoli = newField(crc32.Castagnoli)
)

func newField(polynomial uint32) *Field {
	f := &Field{polynomial: polynomial}
	for n := range f.carries {
		v := uint32(n)
		for range 4 {
			v = v>>1 ^ polynomial&-(v&1)
		}
		f.carries[n] = v
	}
	f.powers[0] = 1 << 30 // x^1
	for k := 1; k < len(f.powers); k++ {
		f.powers[k] = f.Multiply(f.powers[k-1], f.powers[k-1])
	}
	return f
}

// Multiply is the product of two polynomials of degree below 32 modulo the
// field's. Bits are reflected: x^0 is the top bit.
//
// It takes four bits of b at a time, from the lowest (the highest powers) on:
// what there is is shifted by x^4, and a times the four is added. That is a third
// of the time of one bit at a time, and a fresh body has some dozens to do.
func (f *Field) Multiply(a, b uint32) uint32 {
	polynomial := f.polynomial
	var times [16]uint32 // a by what four bits stand for: 8 is 1, 4 is x, 2 is x^2, 1 is x^3
	times[8] = a
	times[4] = a>>1 ^ polynomial&-(a&1)
	times[2] = times[4]>>1 ^ polynomial&-(times[4]&1)
	times[1] = times[2]>>1 ^ polynomial&-(times[2]&1)
	times[3] = times[2] ^ times[1]
	for i := 1; i < 4; i++ {
		times[4+i] = times[4] ^ times[i]
	}
	for i := 1; i < 8; i++ {
		times[8+i] = times[8] ^ times[i]
	}
	var p uint32
	for range 8 {
		p = p>>4 ^ f.carries[p&15] ^ times[b&15]
		b >>= 4
	}
	return p
}

// Shift is x^(8n): what a sum is multiplied with when n bytes follow.
func (f *Field) Shift(n int) uint32 {
	p := uint32(1) << 31 // x^0
	for k := uint(n); k != 0; k &= k - 1 {
		p = f.Multiply(f.powers[(bits.TrailingZeros(k)+3)&63], p)
	}
	return p
}
