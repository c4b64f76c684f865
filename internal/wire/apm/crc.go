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
//
// It takes four bits of b at a time, from the lowest (the highest powers) on:
// what there is is shifted by x^4, and a times the four is added. That is a third
// of the time of one bit at a time, and a fresh body has some dozens to do.
func multiply(a, b uint32) uint32 {
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
		p = p>>4 ^ carries[p&15] ^ times[b&15]
		b >>= 4
	}
	return p
}

// carries[n] is what the bits n, shifted out by x^4, come back as.
var carries = func() (c [16]uint32) {
	for n := range c {
		v := uint32(n)
		for range 4 {
			v = v>>1 ^ polynomial&-(v&1)
		}
		c[n] = v
	}
	return c
}()

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
