// Package crc combines CRC-32 checksums: it computes the sum of bytes A followed by
// bytes B from both sums, without reading the bytes again. So a batch or a body of
// which only a few bytes change gets its new checksum cheaply.
//
// A CRC is linear: without the inversions before and after,
//
//	sum(A ++ B) = sum(A) * x^(8*len(B)) + sum(B)   in GF(2)[x] modulo the polynomial
//
// and with them the same is true of complete checksums (zlib's crc32_combine; Adler,
// https://stackoverflow.com/a/23126768).
package crc

import (
	"hash/crc32"
	"math/bits"
	"sync/atomic"
)

// A Field is the arithmetic of one polynomial. It may be used by any goroutine.
type Field struct {
	polynomial uint32     // reflected: the highest power is the lowest bit
	carries    [16]uint32 // carries[n] is x^4 times the bits n that it shifts out, reduced
	powers     [64]uint32 // powers[k] is x^(2^k)
	shifts     [tabled]atomic.Pointer[products]
}

// tabled is below which length a shift has a table: 2 MiB, if each length occurs. With more
// bytes than that, their own sum and their copying take longer than a product.
const tabled = 4096

// products has the product of a constant and of each value of each four bits of a sum, the lowest
// bits first.
type products [8][16]uint32

// The polynomials of gzip and of Kafka's batches.
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

// Multiply returns the product of two polynomials of degree below 32 modulo the
// field's. Bits are reflected: x^0 is the top bit.
//
// It processes four bits of b at a time, beginning with the lowest (the highest
// powers): it multiplies the result by x^4 and adds a times the four bits. This
// takes a third of the time of single bits; a fresh body needs some dozens of
// products.
func (f *Field) Multiply(a, b uint32) uint32 {
	polynomial := f.polynomial
	var times [16]uint32 // a by the polynomial that four bits mean: 8 is 1, 4 is x, 2 is x^2, 1 is x^3
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

// A Shift is x^(8n) as a factor: sums are multiplied by it when n bytes follow. Field.ShiftBy makes
// it; the zero value is none. It may be used by any goroutine.
type Shift struct {
	field *Field
	by    uint32
	table *products // nil: there is none for this length
}

// ShiftBy returns the factor for n bytes. A batch of one small event has the same length again and
// again, and without the table its product took a quarter of the time of sending it.
func (f *Field) ShiftBy(n int) Shift {
	if n < 0 || n >= tabled {
		return Shift{field: f, by: f.Shift(n)}
	}
	table := f.shifts[n].Load()
	if table == nil {
		table = f.productsOf(f.Shift(n))
		f.shifts[n].Store(table)
	}
	return Shift{table: table}
}

// Times returns the product of a sum and the shift.
func (s Shift) Times(sum uint32) uint32 {
	t := s.table
	if t == nil {
		return s.field.Multiply(s.by, sum)
	}
	return t[0][sum&15] ^ t[1][sum>>4&15] ^ t[2][sum>>8&15] ^ t[3][sum>>12&15] ^
		t[4][sum>>16&15] ^ t[5][sum>>20&15] ^ t[6][sum>>24&15] ^ t[7][sum>>28]
}

// productsOf returns the products of a. The top bit of the other factor is x^0.
func (f *Field) productsOf(a uint32) *products {
	t := new(products)
	for bit := 31; bit >= 0; bit-- {
		t[bit/4][1<<(bit%4)] = a
		a = a>>1 ^ f.polynomial&-(a&1)
	}
	for i := range t {
		for n := 3; n < 16; n++ {
			if low := n & -n; low != n {
				t[i][n] = t[i][low] ^ t[i][n^low]
			}
		}
	}
	return t
}

// Shift returns x^(8n), by which a sum is multiplied when n bytes follow.
func (f *Field) Shift(n int) uint32 {
	p := uint32(1) << 31 // x^0
	for k := uint(n); k != 0; k &= k - 1 {
		p = f.Multiply(f.powers[(bits.TrailingZeros(k)+3)&63], p)
	}
	return p
}
