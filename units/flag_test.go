package units

import (
	"math"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"pgregory.net/rapid"
)

func TestFlag(t *testing.T) {
	for _, tt := range []struct{ name, got, want string }{
		{"no size", FlagSize(0), "0B"},
		{"bytes", FlagSize(1500), "1500B"},
		{"kibibytes", FlagSize(64 << 10), "64KiB"},
		{"not whole in a larger unit", FlagSize(1536 << 20), "1536MiB"},
		{"gibibytes", FlagSize(2 << 30), "2GiB"},
		{"tebibytes", FlagSize(3 << 40), "3TiB"},
		{"above: what is small is exact", FlagSizeAbove(1501), "1501B"},
		{"above: rounded up", FlagSizeAbove(2000*1_000_000 - 1), "1908MiB"},
		{"above: what is even stays", FlagSizeAbove(430 << 20), "430MiB"},
		{"above: one more", FlagSizeAbove(430<<20 + 1), "431MiB"},
		{"no time", FlagDuration(0), "0s"},
		{"milliseconds", FlagDuration(1500 * time.Millisecond), "1.5s"},
		{"microseconds", FlagDuration(85 * time.Microsecond), "85us"},
		{"a minute", FlagDuration(time.Minute), "1m"},
		{"ten seconds", FlagDuration(10 * time.Second), "10s"},
		{"ten minutes", FlagDuration(10 * time.Minute), "10m"},
		{"a minute and a half", FlagDuration(90 * time.Second), "1m30s"},
		{"a day", FlagDuration(24 * time.Hour), "24h"},
		{"a day and a second", FlagDuration(24*time.Hour + time.Second), "24h0m1s"},
		{"no rate", FlagRate(0), "0/s"},
		{"half an event", FlagRate(0.5), "0.5/s"},
		{"thousands", FlagRate(50_000), "50k/s"},
		{"not whole thousands", FlagRate(1_234), "1234/s"},
		{"the highest", FlagRate(MaxRate), "1000G/s"},
		{"no number", FlagRate(math.NaN()), "0/s"},
	} {
		assert.Equal(t, tt.got, tt.want, "%s", tt.name)
	}
}

// TestFlagValuesParse: flag values are parsed to the same quantity, or a slightly
// larger one where documented, and no shell splits them.
func TestFlagValuesParse(t *testing.T) {
	one := func(t *rapid.T, text string) string {
		if strings.ContainsAny(text, " \t,'\"") {
			t.Fatalf("%q is not one word", text)
		}
		return text
	}
	t.Run("size", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.Int64Min(0).Draw(t, "n")
			if got, err := ParseSize(one(t, FlagSize(n))); err != nil || got != n {
				t.Fatalf("%d printed %q: got %d, %v", n, FlagSize(n), got, err)
			}
		})
	})
	t.Run("size above", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.Int64Range(0, 1<<62).Draw(t, "n")
			got, err := ParseSize(one(t, FlagSizeAbove(n)))
			if err != nil || got < n || float64(got-n) > 0.1*float64(n) {
				t.Fatalf("%d printed %q: got %d, %v", n, FlagSizeAbove(n), got, err)
			}
		})
	})
	t.Run("duration", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			d := time.Duration(rapid.Int64Min(0).Draw(t, "d"))
			if got, err := ParseDuration(one(t, FlagDuration(d))); err != nil || got != d {
				t.Fatalf("%d printed %q: got %d, %v", d, FlagDuration(d), got, err)
			}
		})
	})
	t.Run("whole duration", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			d := time.Second * time.Duration(rapid.Int64Range(0, 1e7).Draw(t, "s"))
			if got, err := ParseDuration(one(t, FlagDuration(d))); err != nil || got != d {
				t.Fatalf("%d printed %q: got %d, %v", d, FlagDuration(d), got, err)
			}
		})
	})
	t.Run("rate", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			r := rapid.OneOf(rapid.Float64Range(1e-6, MaxRate), rapid.Map(rapid.Int64Range(0, 1e12), func(n int64) float64 { return float64(n) })).Draw(t, "r")
			if got, err := ParseRate(one(t, FlagRate(r))); err != nil || got != r {
				t.Fatalf("%v printed %q: got %v, %v", r, FlagRate(r), got, err)
			}
		})
	})
}
