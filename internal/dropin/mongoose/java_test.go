package mongoose

import (
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// Sizes, and numbers in columns.
func TestNumbers(t *testing.T) {
	for n, want := range map[uint64]string{0: "0B", 1023: "1023B", 1024: "1KB", 2000000: "1.907MB", 10 << 20: "10MB", 102400 + 512: "100.5KB", 20<<30 + 1<<29: "20.50GB"} {
		assert.Equal(t, bytesText(n), want, "%d bytes", n)
	}
	for _, tt := range []struct {
		x    float64
		n    int
		want string
	}{{1234.5678, 8, "1234.567"}, {12345678.9, 8, "12345678"}, {0.5, 7, "0.5"}, {1e-9, 7, "0"}, {4.81394942941553e-4, 7, "4.81E-4"}, {1.5e-4, 7, "1.5E-4"}, {1.23456789e-5, 10, "1.23456E-5"}, {9.99999e-4, 8, "9.999E-4"}, {123456789, 8, "1.2345E8"}, {123456789012, 8, "1.234E11"}, {1e7, 7, "1.0E7"}, {31365.05, 8, "31365.05"}} {
		assert.Equal(t, fixed(tt.x, tt.n), tt.want, "%g in %d", tt.x, tt.n)
	}
}

// A count of failures that is too long for its column does not look like another
// number.
func TestManyFailures(t *testing.T) {
	for _, tt := range []struct {
		n             uint64
		right, strict string
	}{{0, "     0", "     0"}, {999_999, "999999", "999999"}, {1_000_000, "1.00E6", "000000"}, {1_234_567, "1.23E6", "234567"}, {12_345_678_901, "1.2E10", "678901"}} {
		assert.Equal(t, left((&step{}).failed(tt.n), 6), tt.right, "%d", tt.n)
		assert.Equal(t, left((&step{strict: true}).failed(tt.n), 6), tt.strict, "with --strict %d", tt.n)
		var b strings.Builder
		(&table{w: &b, s: &step{headerEach: 20}}).row(&metrics{fail: tt.n})
		assert.Has(t, b.String(), "|           0|"+tt.right+"|")
	}
}
