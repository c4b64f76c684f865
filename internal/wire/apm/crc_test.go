package apm

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// slowly is multiply by the book, a bit at a time.
func slowly(a, b uint32) uint32 {
	var p uint32
	for range 32 {
		p ^= a & uint32(int32(b)>>31)
		a = a>>1 ^ polynomial&-(a&1)
		b <<= 1
	}
	return p
}

func TestMultiply(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 10_000 {
		a, b := rng.Uint32(), rng.Uint32()
		if i < 32 {
			b = 1 << i
		}
		if got, want := multiply(a, b), slowly(a, b); got != want {
			t.Fatalf("multiply(%#x, %#x) is %#x, want %#x", a, b, got, want)
		}
	}
}

// Sums of two parts are joined as the standard library would sum both.
func TestSumsAreJoined(t *testing.T) {
	all := make([]byte, 1000)
	for i := range all {
		all[i] = byte(i * i)
	}
	for _, n := range []int{0, 1, 7, 500, 999, 1000} {
		got := multiply(shiftOf(len(all)-n), rawSum(all[:n])) ^ rawSum(all[n:])
		if want := rawSum(all); got != want {
			t.Errorf("%d bytes and the rest: %#x, want %#x", n, got, want)
		}
	}
	if rawSum(all) == crc32.ChecksumIEEE(all) {
		t.Error("the raw sum has the inversions")
	}
}
