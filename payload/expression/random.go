package expression

import "math/bits"

// mix returns a 64-bit number for a seed and an index: the finalizer of SplitMix64, as
// for the other bytes of an event (see package payload).
func mix(seed, n uint64) uint64 {
	x := seed + n*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// below maps a random number to 0..n-1, and to 0 if n is below 1.
func below(u uint64, n int64) int64 {
	if n < 1 {
		return 0
	}
	hi, _ := bits.Mul64(u, uint64(n))
	return int64(hi)
}
