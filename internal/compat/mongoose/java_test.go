package mongoose

import (
	"strings"
	"testing"
)

// Sizes, and numbers in columns.
func TestNumbers(t *testing.T) {
	for n, want := range map[uint64]string{0: "0B", 1023: "1023B", 1024: "1KB", 2000000: "1.907MB", 10 << 20: "10MB", 102400 + 512: "100.5KB", 20<<30 + 1<<29: "20.50GB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d bytes are %s, want %s", n, got, want)
		}
	}
	for _, tt := range []struct {
		x    float64
		n    int
		want string
	}{{1234.5678, 8, "1234.567"}, {12345678.9, 8, "12345678"}, {0.5, 7, "0.5"}, {1e-9, 7, "0"}, {4.81394942941553e-4, 7, "4.81E-4"}, {1.5e-4, 7, "1.5E-4"}, {1.23456789e-5, 10, "1.23456E-5"}, {9.99999e-4, 8, "9.999E-4"}, {123456789, 8, "1.2345E8"}, {123456789012, 8, "1.234E11"}, {1e7, 7, "1.0E7"}, {31365.05, 8, "31365.05"}} {
		if got := fixed(tt.x, tt.n); got != tt.want {
			t.Errorf("%g in %d is %q, want %q", tt.x, tt.n, got, tt.want)
		}
	}
}

// A count of failures that is too long for its column does not look like another
// number.
func TestManyFailures(t *testing.T) {
	for _, tt := range []struct {
		n             uint64
		right, strict string
	}{{0, "     0", "     0"}, {999_999, "999999", "999999"}, {1_000_000, "1.00E6", "000000"}, {1_234_567, "1.23E6", "234567"}, {12_345_678_901, "1.2E10", "678901"}} {
		if got := left((&step{}).failed(tt.n), 6); got != tt.right {
			t.Errorf("%d is %q, want %q", tt.n, got, tt.right)
		}
		if got := left((&step{strict: true}).failed(tt.n), 6); got != tt.strict {
			t.Errorf("with --strict %d is %q, want %q", tt.n, got, tt.strict)
		}
		var b strings.Builder
		(&table{w: &b, s: &step{headerEach: 20}}).row(&metrics{fail: tt.n})
		if !strings.Contains(b.String(), "|           0|"+tt.right+"|") {
			t.Errorf("%d is not in the row:\n%s", tt.n, b.String())
		}
	}
}
