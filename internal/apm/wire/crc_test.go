package wire

import (
	"hash/crc32"
	"testing"

	"carronade/test/testkit/assert"
)

// The raw sums of two parts combine to the raw sum of both.
func TestSumsAreJoined(t *testing.T) {
	all := make([]byte, 1000)
	for i := range all {
		all[i] = byte(i * i)
	}
	for _, n := range []int{0, 1, 7, 500, 999, 1000} {
		got := field.Multiply(field.Shift(len(all)-n), rawSum(all[:n])) ^ rawSum(all[n:])
		assert.Equal(t, got, rawSum(all), "%d bytes and the rest", n)
	}
	assert.True(t, rawSum(all) != crc32.ChecksumIEEE(all), "the raw sum has the inversions")
}
