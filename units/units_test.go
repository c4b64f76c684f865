package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// check parses the texts of a file: a name, a text, its value as it is printed or nothing, and what the error must say.
func check[T any](t *testing.T, file string, parse func(string) (T, error)) {
	t.Helper()
	for _, row := range testkit.CSV(t, "testdata/"+file) {
		name, text, want, wrong := row[0], row[1], row[2], row[3]
		t.Run(name, func(t *testing.T) {
			got, err := parse(text)
			if wrong == "" {
				assert.OK(t, err, "%q", text)
				assert.Equal(t, fmt.Sprint(got), want, "%q", text)
				return
			}
			checkError(t, text, wrong, err)
		})
	}
}

// checkError checks that an error says what is wrong, the text, and an example.
func checkError(t *testing.T, text, wrong string, err error) {
	t.Helper()
	parts := []string{wrong, `"`, "such as"}
	if strings.Contains(wrong, " or ") {
		parts[2] = "one of these two" // and the reason has the examples
	}
	for _, part := range parts {
		assert.ErrorHas(t, err, part, "%q", text)
	}
}

func TestParse(t *testing.T) {
	t.Run("duration", func(t *testing.T) { check(t, "durations.csv", ParseDuration) })
	t.Run("size", func(t *testing.T) { check(t, "sizes.csv", ParseSize) })
	t.Run("rate", func(t *testing.T) { check(t, "rates.csv", ParseRate) })
	t.Run("count", func(t *testing.T) { check(t, "counts.csv", ParseCount) })
	t.Run("share", func(t *testing.T) { check(t, "shares.csv", ParseShare) })
	long := "1" + strings.Repeat("x", 1000)
	_, err := ParseCount(long)
	checkError(t, long, `..."`, err) // it is cut
}

func TestFormat(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct{ name, got, want string }{
		{"no time", FormatDuration(0), "0 s"},
		{"ns", FormatDuration(85), "85 ns"},
		{"us", FormatDuration(85 * time.Microsecond), "85 us"},
		{"ms", FormatDuration(1234567), "1.23 ms"},
		{"s", FormatDuration(12345 * time.Millisecond), "12.3 s"},
		{"carries into the next unit", FormatDuration(999999), "1 ms"},
		{"carries into minutes", FormatDuration(59960 * time.Millisecond), "1m00s"},
		{"minutes", FormatDuration(123 * time.Second), "2m03s"},
		{"carries into hours", FormatDuration(time.Hour - time.Millisecond), "1h00m"},
		{"hours", FormatDuration(62 * time.Minute), "1h02m"},
		{"carries into days", FormatDuration(day - time.Millisecond), "1d00h"},
		{"days", FormatDuration(3*day + 4*time.Hour), "3d04h"},
		{"longest", FormatDuration(math.MaxInt64), "106751d23h"},
		{"negative", FormatDuration(-1230 * time.Microsecond), "-1.23 ms"},
		{"most negative", FormatDuration(math.MinInt64), "-106751d23h"},

		{"bytes", FormatSize(300), "300 B"},
		{"bytes below a KiB", FormatSize(1023), "1023 B"},
		{"KiB", FormatSize(1 << 10), "1 KiB"},
		{"KiB below a MiB", FormatSize(1<<20 - 1), "1 MiB"},
		{"between", FormatSize(1010 << 10), "1010 KiB"},
		{"256 KiB", FormatSize(256 << 10), "256 KiB"},
		{"GiB", FormatSize(1288490189), "1.2 GiB"},
		{"three digits", FormatSize(1234567890), "1.15 GiB"},
		{"beyond TiB", FormatSize(math.MaxInt64), "8388608 TiB"},
		{"negative size", FormatSize(-2048), "-2 KiB"},
		{"most negative size", FormatSize(math.MinInt64), "-8388608 TiB"},

		{"rate", FormatRate(850), "850/s"},
		{"k", FormatRate(50000), "50 k/s"},
		{"M", FormatRate(1234567), "1.23 M/s"},
		{"carries", FormatRate(999999), "1 M/s"},
		{"slow", FormatRate(1.0 / 30), "0.0333/s"},
		{"still", FormatRate(0), "0/s"},
		{"no rate", FormatRate(math.NaN()), "n/a"},
		{"endless rate", FormatRate(math.Inf(1)), "n/a"},

		{"count", FormatCount(12345678), "12,345,678"},
		{"three digit count", FormatCount(999), "999"},
		{"four digit count", FormatCount(1000), "1,000"},
		{"none", FormatCount(0), "0"},
		{"seconds", FormatDuration(Seconds(1.5)), "1.5 s"},
		{"seconds that no float has", Seconds(1.005).String(), "1.005s"},
		{"seconds before", Seconds(-0.0000000016).String(), "-2ns"},
		{"no things", Plural(0, "event"), "0 events"},
		{"one thing", Plural(uint64(1), "whole interval"), "1 whole interval"},
		{"many things", Plural(int64(12345), "event"), "12,345 events"},
		{"many batches", Plural(3, "batch"), "3 batches"},
		{"short count", FormatCountShort(12345678), "12.3 M"},
		{"short small count", FormatCountShort(850), "850"},

		{"percent", FormatPercent(0.01), "1%"},
		{"three digits percent", FormatPercent(0.98765), "98.8%"},
		{"small percent", FormatPercent(0.00012345), "0.0123%"},
		{"all", FormatPercent(1), "100%"},
		{"not quite all", FormatPercent(0.99996), "99.996%"},
		{"hardly not all", FormatPercent(0.99999999999999), "99.999999999%"},
		{"more than all", FormatPercent(1.5), "150%"},
		{"no percent", FormatPercent(math.NaN()), "n/a"},
		{"negative percent", FormatPercent(-0.125), "-12.5%"},
	}
	for _, test := range tests {
		assert.Equal(t, test.got, test.want, "%s", test.name)
	}
}

func TestParseWeights(t *testing.T) {
	words := []string{"a", "b", "c"}
	for _, tt := range []struct {
		text  string
		want  [3]int
		error string
	}{
		{"", [3]int{}, ""},
		{"b", [3]int{0, 1, 0}, ""},
		{"a=3, c=0,b", [3]int{3, 1, 0}, ""},
		{"d=1", [3]int{}, `"d": want one of a, b, c`},
		{"a=x", [3]int{}, "whole number"},
		{"a=-1", [3]int{}, "whole number"},
		{"a=1000001", [3]int{}, "1,000,000"},
	} {
		var got [3]int
		err := ParseWeights(tt.text, words, got[:])
		if tt.error != "" {
			assert.ErrorHas(t, err, tt.error)
			continue
		}
		assert.OK(t, err)
		assert.Equal(t, got, tt.want, tt.text)
	}
}

// near reports whether two numbers differ by at most half a unit of the third significant digit, with tolerance for float64.
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

// No text makes a parser panic or return an invalid quantity, and each refusal has a meaningful error.
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

func TestSpark(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		base   float64
		ascii  bool
		want   string
	}{
		{"none", nil, 0, false, ""},
		{"a climb", []float64{0, 1, 2, 3, 4, 5, 6, 7}, 0, false, "▁▂▃▄▅▆▇█"},
		{"far above its base", []float64{100, 101, 100}, 0, false, "███"},
		{"nothing but the base", []float64{0, 0}, 0, false, "▁▁"},
		{"below its base", []float64{-7, 0}, 0, false, "▁█"},
		{"holes", []float64{1, math.NaN(), math.Inf(1), 1}, 0, false, "█  █"},
		{"no blocks", []float64{0, 7}, 0, true, "_#"},
	}
	for _, tt := range tests {
		assert.Equal(t, Spark(tt.values, tt.base, tt.ascii), tt.want, "%s", tt.name)
	}
}

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
		assert.Must(t, !strings.ContainsAny(text, " \t,'\""), "%q is not one word", text)
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
