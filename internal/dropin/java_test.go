package dropin

import (
	"math"
	"testing"

	"carronade/test/testkit/assert"
)

// Numbers in Java's format.
func TestJavaDouble(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0.0", 1: "1.0", -2.5: "-2.5", 0.673: "0.673", 93.913: "93.913", 0.8399880000000001: "0.8399880000000001", 12345: "12345.0",
		0.001: "0.001", 0.00012: "1.2E-4", 3.5356e-4: "3.5356E-4", 9999999: "9999999.0", 8494458.703573164: "8494458.703573164",
		1e7: "1.0E7", 12345678.5: "1.23456785E7", 123456789: "1.23456789E8", math.Inf(1): "Infinity", math.Inf(-1): "-Infinity",
	} {
		assert.Equal(t, JavaDouble(x), want, "%g", x)
	}
	assert.Equal(t, JavaDouble(math.NaN()), "NaN", "NaN")
}
