package units

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"pgregory.net/rapid"
)

// near reports whether two numbers differ by at most half a unit of the third
// significant digit, with tolerance for float64.
func near(got, want float64) bool { return math.Abs(got-want) <= 0.005001*math.Abs(want) }

func TestPrintedFormsParse(t *testing.T) {
	t.Run("duration", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			d := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "d"))
			got, err := ParseDuration(FormatDuration(d))
			// The two largest units, as in 1m00s, 1h00m, 1d00h: at most half of 1/60.
			if err != nil || math.Abs(float64(got-d)) > 0.021*float64(d) {
				t.Fatalf("%d printed %q: got %d, %v", d, FormatDuration(d), got, err)
			}
		})
	})
	t.Run("duration as the standard library prints it", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			d := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "d"))
			if got, err := ParseDuration(d.String()); err != nil || got != d {
				t.Fatalf("%q: got %v, %v", d.String(), got, err)
			}
		})
	})
	t.Run("size", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.Int64Range(0, 1<<50).Draw(t, "n")
			got, err := ParseSize(FormatSize(n))
			if err != nil || !near(float64(got), float64(n)) {
				t.Fatalf("%d printed %q: got %d, %v", n, FormatSize(n), got, err)
			}
		})
	})
	t.Run("bare size", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.Int64Range(0, math.MaxInt64).Draw(t, "n")
			if got, err := ParseSize(strconv.FormatInt(n, 10)); err != nil || got != n {
				t.Fatalf("%d: got %d, %v", n, got, err)
			}
		})
	})
	t.Run("rate", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r := math.Pow(10, rapid.Float64Range(-6, 11.9).Draw(t, "log10"))
			got, err := ParseRate(FormatRate(r))
			if err != nil || !near(got, r) {
				t.Fatalf("%v printed %q: got %v, %v", r, FormatRate(r), got, err)
			}
		})
	})
	t.Run("exact rate", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r := rapid.Float64Range(0, MaxRate).Filter(func(r float64) bool { return r == 0 || r > 1e-20 }).Draw(t, "r")
			text := strconv.FormatFloat(r, 'g', -1, 64) + "/s"
			if got, err := ParseRate(text); err != nil || got != r {
				t.Fatalf("%q: got %v, %v", text, got, err)
			}
		})
	})
	t.Run("count", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.Uint64().Draw(t, "n")
			if got, err := ParseCount(FormatCount(n)); err != nil || got != n {
				t.Fatalf("%q: got %d, %v", FormatCount(n), got, err)
			}
			if n < 1e18 {
				got, err := ParseCount(FormatCountShort(n))
				if err != nil || !near(float64(got), float64(n)) {
					t.Fatalf("%d printed %q: got %d, %v", n, FormatCountShort(n), got, err)
				}
			}
		})
	})
	t.Run("percent", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			p := rapid.Float64Range(1e-9, 1).Draw(t, "p")
			got, err := ParseShare(FormatPercent(p))
			if err != nil || !near(got, p) || p < 1 && got == 1 {
				t.Fatalf("%v printed %q: got %v, %v", p, FormatPercent(p), got, err)
			}
		})
	})
}

// FuzzParse: no text makes a parser panic or return an invalid quantity, and each
// refusal has a meaningful error.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "0", "1", "-1", "1h30m", "1.5GiB", "64K", "1 kb", "3m", "50k/s", "3/m", "12,345,678", "1%", "1e6", "1e-6s", "1_0", "1__0", ".", ".5d",
		"1e", "1e+", "1eB", "9223372036854775807", "18446744073709551616", "NaN", "inf", "0x1p-2", "1µ", "\xff", "5 \xb5s", "1e40", "1e41", "٣s", "1s1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		refused(t, err)
		assert.True(t, d >= 0, "duration %q: got %d", s, d)
		// The printed form of whatever was parsed can be parsed again.
		if _, err := ParseDuration(FormatDuration(d)); err != nil {
			t.Errorf("duration %q: %v", s, err)
		}
		size, err := ParseSize(s)
		refused(t, err)
		assert.True(t, size >= 0, "size %q: got %d", s, size)
		rate, err := ParseRate(s)
		refused(t, err)
		assert.True(t, rate >= 0 && rate <= MaxRate, "rate %q: got %v", s, rate)
		if _, err := ParseRate(FormatRate(rate)); err != nil {
			t.Errorf("rate %q: %v", s, err)
		}
		n, err := ParseCount(s)
		refused(t, err)
		if got, err := ParseCount(fmt.Sprint(n)); got != n || err != nil {
			t.Errorf("count %q: got %d, want %d", s, got, n)
		}
		share, err := ParseShare(s)
		refused(t, err)
		assert.True(t, share >= 0 && share <= 1, "share %q: got %v", s, share)
	})
}

func refused(t *testing.T, err error) {
	t.Helper()
	if err != nil && (len(err.Error()) < 20 || len(err.Error()) > 1000) {
		t.Errorf("error of %d bytes: %v", len(err.Error()), err)
	}
}
