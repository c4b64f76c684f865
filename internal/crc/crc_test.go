package crc

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"carronade/test/testkit/assert"
)

var fields = []struct {
	name string
	f    *Field
}{{"IEEE", IEEE}, {"Castagnoli", Castagnoli}}

// multiplyBits is Multiply in its simplest form, a bit at a time.
func multiplyBits(polynomial, a, b uint32) uint32 {
	var p uint32
	for range 32 {
		p ^= a & uint32(int32(b)>>31)
		a = a>>1 ^ polynomial&-(a&1)
		b <<= 1
	}
	return p
}

func TestMultiply(t *testing.T) {
	for _, tt := range fields {
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range 10_000 {
			a, b := rng.Uint32(), rng.Uint32()
			if i < 32 {
				b = 1 << i
			}
			got, want := tt.f.Multiply(a, b), multiplyBits(tt.f.polynomial, a, b)
			assert.Must(t, got == want, "%s: %#x by %#x is %#x, want %#x", tt.name, a, b, got, want)
		}
	}
}

// The combined sum of two parts is the standard library's sum of both.
func TestCombineSums(t *testing.T) {
	all := make([]byte, 1000)
	for i := range all {
		all[i] = byte(i * i)
	}
	for _, tt := range fields {
		table := crc32.MakeTable(tt.f.polynomial)
		for _, n := range []int{0, 1, 7, 500, 999, 1000} {
			got := tt.f.Multiply(tt.f.Shift(len(all)-n), crc32.Checksum(all[:n], table)) ^ crc32.Checksum(all[n:], table)
			assert.Equal(t, got, crc32.Checksum(all, table), "%s, %d bytes and the rest", tt.name, n)
		}
	}
}

// A shift's product is that of its factor, with a table and without one.
func TestShift(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, tt := range fields {
		for n := range tabled + 3 {
			shift, sum := tt.f.ShiftBy(n), rng.Uint32()
			for range 2 { // also with a table that is there
				got, want := shift.Times(sum), tt.f.Multiply(tt.f.Shift(n), sum)
				assert.Must(t, got == want, "%s: %#x by %d bytes is %#x, want %#x", tt.name, sum, n, got, want)
				shift, sum = tt.f.ShiftBy(n), rng.Uint32()
			}
		}
	}
}

func BenchmarkShift(b *testing.B) {
	x := uint32(0x12345678)
	for b.Loop() {
		x = Castagnoli.ShiftBy(300).Times(x)
	}
	_ = x
}

func BenchmarkMultiply(b *testing.B) {
	x := uint32(0x12345678)
	for b.Loop() {
		x = IEEE.Multiply(0x7fffffff, x)
	}
	_ = x
}
