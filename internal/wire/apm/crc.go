package apm

import (
	"hash/crc32"
	"math/bits"
)

// gzip's checksum, CRC-32, is linear: of bytes A followed by B, without the
// inversions before and after,
//
//	sum(A ++ B) = sum(A) * x^(8*len(B)) + sum(B)   in GF(2)[x] modulo the polynomial
//
// (zlib's crc32_combine; Adler, https://stackoverflow.com/a/23126768). So the
// sum of a long body of which few bytes changed is had from those bytes alone.

const polynomial = crc32.IEEE // reflected: the highest power is the lowest bit

// multiply is the product of two polynomials of degree below 32 modulo the
// polynomial. Bits are reflected: x^0 is the top bit.
func multiply(a, b uint32) uint32 {
	var p uint32
	for range 32 {
		p ^= a & uint32(int32(b)>>31)
		a = a>>1 ^ polynomial&-(a&1)
		b <<= 1
	}
	return p
}

// powers[k] is x^(2^k).
var powers = func() (p [64]uint32) {
	p[0] = 1 << 30 // x^1
	for k := 1; k < len(p); k++ {
		p[k] = multiply(p[k-1], p[k-1])
	}
	return p
}()

// shiftOf is x^(8n): what a sum is multiplied with when n bytes follow.
func shiftOf(n int) uint32 {
	p := uint32(1) << 31 // x^0
	for k := uint(n); k != 0; k &= k - 1 {
		p = multiply(powers[(bits.TrailingZeros(k)+3)&63], p)
	}
	return p
}

// rawSum is the sum of b without the inversions, so that zeros before b do not
// count.
func rawSum(b []byte) uint32 { return ^crc32.Update(^uint32(0), crc32.IEEETable, b) }
