package units

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

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
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.got, test.want)
		})
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
