package kafka

import (
	"hash/crc32"
	"math/bits"
)

// A batch's checksum covers its header and its records. The header changes
// with each sending (time, producer, sequence), the records of a batch encoded
// ahead do not. CRC-32C is linear: with A's sum and B's sum known,
//
//	sum(A ++ B) = sum(A) * x^(8*len(B)) + sum(B)   in GF(2)[x] modulo the polynomial
//
// (zlib's crc32_combine). So that stamping a batch costs one product and the
// sum of 40 bytes, some 60 ns, instead of reading all of it, some 5 us for
// 107 KB.

const polynomial = crc32.Castagnoli // reflected: the highest power is the lowest bit

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

// A Sum is the checksum of bytes that do not change, ready to follow others.
type Sum struct {
	crc   uint32
	shift uint32
}

// SumOf computes the sum of b, reading all of it.
func SumOf(b []byte) Sum {
	return Sum{crc: crc32.Checksum(b, castagnoli), shift: shiftOf(len(b))}
}

// SumAt is the sum of n bytes whose CRC-32C is known.
func SumAt(crc uint32, n int) Sum { return Sum{crc: crc, shift: shiftOf(n)} }

// After is the CRC-32C of bytes with the sum head, followed by those of s.
func (s Sum) After(head uint32) uint32 { return multiply(s.shift, head) ^ s.crc }

// CRC is the CRC-32C of the bytes themselves.
func (s Sum) CRC() uint32 { return s.crc }

// UpdateCRC continues a CRC-32C over b; it begins at 0.
func UpdateCRC(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }

// Seal writes the checksum into head, a batch's header that is followed by
// records with the sum s, and returns it.
func Seal(head []byte, s Sum) uint32 {
	crc := s.After(crc32.Checksum(head[atAttributes:HeaderSize], castagnoli))
	head[atCRC], head[atCRC+1], head[atCRC+2], head[atCRC+3] = byte(crc>>24), byte(crc>>16), byte(crc>>8), byte(crc)
	return crc
}
