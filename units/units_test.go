package units

import (
	"math"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

type row[T any] struct {
	name, text string
	want       T
	err        string // what the error must say; empty: none
}

func check[T comparable](t *testing.T, parse func(string) (T, error), rows []row[T]) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got, err := parse(r.text)
			switch {
			case r.err == "" && err != nil:
				t.Fatalf("%q: %v", r.text, err)
			case r.err == "" && got != r.want:
				t.Errorf("%q: got %v, want %v", r.text, got, r.want)
			case r.err != "" && err == nil:
				t.Errorf("%q: got %v, want an error with %q", r.text, got, r.err)
			case r.err != "":
				parts := []string{r.err, `"`, "such as"}
				if strings.Contains(r.err, " or ") {
					parts[2] = "one of these two" // and the reason has the examples
				}
				for _, part := range parts {
					assert.True(t, strings.Contains(err.Error(), part), "%q: error %q does not say %q", r.text, err, part)
				}
			}
		})
	}
}

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	check(t, ParseDuration, []row[time.Duration]{
		{"seconds", "20s", 20 * time.Second, ""},
		{"fraction", "1.5s", 1500 * time.Millisecond, ""},
		{"leading point", ".5s", 500 * time.Millisecond, ""},
		{"exponent", "1e3ms", time.Second, ""},
		{"compound", "1h30m", 90 * time.Minute, ""},
		{"compound with blanks", " 1h 30m ", 90 * time.Minute, ""},
		{"printed form", "2m03s", 2*time.Minute + 3*time.Second, ""},
		{"printed with a blank", "1.23 ms", 1230 * time.Microsecond, ""},
		{"days", "2d", 2 * day, ""},
		{"days and hours", "1d12h", 36 * time.Hour, ""},
		{"micro sign", "5µs", 5 * time.Microsecond, ""},
		{"greek mu", "5μs", 5 * time.Microsecond, ""},
		{"us", "5us", 5 * time.Microsecond, ""},
		{"ns", "7ns", 7, ""},
		{"rounded to the nearest", "1.6ns", 2, ""},
		{"half away from zero", "0.5ns", 1, ""},
		{"zero alone", "0", 0, ""},
		{"zero with unit", "0s", 0, ""},
		{"exact where float64 is not", "0.000000001s", 1, ""},
		{"longest", "9223372036854775807ns", math.MaxInt64, ""},
		{"underscores", "1_000ms", time.Second, ""},
		{"empty", "", 0, "is empty"},
		{"blanks only", "  ", 0, "is empty"},
		{"not a unit", "10", 0, "without a unit"},
		{"not a unit at the end", "1m30", 0, "without a unit"},
		{"two points", "1.2.3s", 0, "without a unit"},
		{"negative", "-5s", 0, "negative"},
		{"negative later", "1m-5s", 0, "negative"},
		{"unknown unit", "10w", 0, `"w"`},
		{"unknown longer unit", "10mins", 0, `"mins"`},
		{"capital", "10S", 0, `"S"`},
		{"nan", "NaN", 0, "number"},
		{"inf", "inf", 0, "number"},
		{"rubbish after", "10s!", 0, `"!"`},
		{"overflow", "9223372036854775808ns", 0, "out of range"},
		{"overflow by days", "200000d", 0, "out of range"},
		{"huge exponent", "1e999999999s", 0, "out of range"},
		{"too many digits", strings.Repeat("9", 100) + "s", 0, "out of range"},
		{"stray underscore", "1__0s", 0, `"__"`},
	})
}

func TestParseSize(t *testing.T) {
	check(t, ParseSize, []row[int64]{
		{"bare bytes", "1500", 1500, ""},
		{"bytes", "1500B", 1500, ""},
		{"KiB", "64KiB", 64 << 10, ""},
		{"kib", "64kib", 64 << 10, ""},
		{"MiB", "3MiB", 3 << 20, ""},
		{"GiB with fraction", "1.5GiB", 3 << 29, ""},
		{"TiB", "2TiB", 2 << 40, ""},
		{"kB", "64kB", 64000, ""},
		{"MB exact where float64 is not", "1.1MB", 1100000, ""},
		{"GB", "1.1GB", 1100000000, ""},
		{"TB", "1TB", 1e12, ""},
		{"KIB", "64KIB", 64 << 10, ""},
		{"k alone", "64k", 0, "may mean 64KiB (powers of 1024) or 64kB (powers of 1000)"},
		{"K alone", "1.5 K", 0, "may mean 1.5KiB (powers of 1024) or 1.5kB (powers of 1000)"},
		{"M alone", "1M", 0, "may mean 1MiB (powers of 1024) or 1MB (powers of 1000)"},
		{"g alone", "1g", 0, "1GiB (powers of 1024) or 1GB"},
		{"T alone", "1T", 0, "1TiB (powers of 1024) or 1TB"},
		{"KB", "1KB", 0, "may mean 1KiB (powers of 1024) or 1kB"},
		{"kb", "1kb", 0, "may mean 1KiB (powers of 1024) or 1kB"},
		{"Kb", "1Kb", 0, "may mean 1KiB (powers of 1024) or 1kB"},
		{"mb", "1_0mb", 0, "may mean 1_0MiB (powers of 1024) or 1_0MB"},
		{"Mb, which may be bits", "10Mb", 0, "may mean 10MiB (powers of 1024) or 10MB"},
		{"blank", "1.2 GiB", 1288490189, ""},
		{"nearest byte", "0.1KiB", 102, ""},
		{"exponent", "1e6", 1000000, ""},
		{"zero", "0", 0, ""},
		{"largest", "9223372036854775807", math.MaxInt64, ""},
		{"empty", "", 0, "is empty"},
		{"negative", "-1", 0, "negative"},
		{"fraction of a byte", "1.5", 0, "fraction of a byte"},
		{"unknown unit", "10Q", 0, `"Q"`},
		{"no number", "KiB", 0, "number"},
		{"range is not a size", "100-200", 0, `"-200"`},
		{"overflow", "9223372036854775808", 0, "out of range"},
		{"overflow by unit", "8388608TiB", 0, "out of range"},
		{"nan", "NaN", 0, "number"},
		{"hexadecimal", "0x10", 0, `"x10"`},
	})
}

func TestParseRate(t *testing.T) {
	check(t, ParseRate, []row[float64]{
		{"bare", "50000", 50000, ""},
		{"per second", "50000/s", 50000, ""},
		{"k", "50k/s", 50000, ""},
		{"K", "50K/s", 50000, ""},
		{"k bare", "50k", 50000, ""},
		{"m before the slash is a million", "3m/s", 3e6, ""},
		{"m behind the slash is a minute", "3/m", 0.05, ""},
		{"both", "6m/m", 1e5, ""},
		{"min", "3/min", 0.05, ""},
		{"M bare", "3M", 3e6, ""},
		{"m bare", "3m", 0, "may mean 3M/s (million a second) or 3/min (a minute)"},
		{"m bare after a blank", " 0.5 m ", 0, "may mean 0.5M/s (million a second) or 0.5/min (a minute)"},
		{"hour", "2/h", 2.0 / 3600, ""},
		{"fraction", "0.5/s", 0.5, ""},
		{"printed form", "1.23 M/s", 1.23e6, ""},
		{"above ten million", "25m/s", 25e6, ""},
		{"zero", "0/s", 0, ""},
		{"highest", "1e12", 1e12, ""},
		{"empty", "", 0, "is empty"},
		{"negative", "-1/s", 0, "negative"},
		{"absurd", "1e13/s", 0, "1e12"},
		{"nan", "NaN", 0, "number"},
		{"inf", "Inf/s", 0, "number"},
		{"unknown time", "5/x", 0, `"/x"`},
		{"nothing behind the slash", "5/", 0, `"/"`},
		{"unknown multiple", "5q/s", 0, `"q/s"`},
		{"two slashes", "5/s/s", 0, `"/s/s"`},
	})
}

func TestParseCount(t *testing.T) {
	check(t, ParseCount, []row[uint64]{
		{"plain", "250000", 250000, ""},
		{"ten million", "10m", 10000000, ""},
		{"capital", "10M", 10000000, ""},
		{"k", "1.5k", 1500, ""},
		{"g", "2g", 2000000000, ""},
		{"b", "2b", 2000000000, ""},
		{"exponent", "1e6", 1000000, ""},
		{"underscores", "250_000", 250000, ""},
		{"printed form", "12,345,678", 12345678, ""},
		{"printed short form", "12.3 M", 12300000, ""},
		{"zero", "0", 0, ""},
		{"largest", "18446744073709551615", math.MaxUint64, ""},
		{"empty", "", 0, "is empty"},
		{"negative", "-1", 0, "negative"},
		{"not whole", "1.5", 0, "whole"},
		{"not whole after the multiple", "1.0001k", 0, "whole"},
		{"not whole by exponent", "1e-3", 0, "whole"},
		{"overflow", "18446744073709551616", 0, "out of range"},
		{"overflow by multiple", "1e11b", 0, "out of range"},
		{"a comma instead of a point", "1,5", 0, `",5"`},
		{"comma groups of three only", "1234,567", 0, `",567"`},
		{"unknown unit", "10x", 0, `"x"`},
		{"a long unit is cut", "1" + strings.Repeat("x", 1000), 0, `..."`},
	})
}

func TestParseShare(t *testing.T) {
	check(t, ParseShare, []row[float64]{
		{"percent", "1%", 0.01, ""},
		{"percent with blank", "98.8 %", 0.988, ""},
		{"part of one", "0.01", 0.01, ""},
		{"all", "100%", 1, ""},
		{"one", "1", 1, ""},
		{"nothing", "0", 0, ""},
		{"empty", "", 0, "is empty"},
		{"negative", "-1%", 0, "negative"},
		{"more than all", "101%", 0, "more than"},
		{"a bare percentage", "5", 0, "more than"},
		{"unknown unit", "5x", 0, `"x"`},
		{"nan", "nan", 0, "number"},
	})
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
