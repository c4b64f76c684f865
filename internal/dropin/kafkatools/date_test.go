package kafkatools

import (
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// The wanted texts are those of java.text.SimpleDateFormat in the English locale.
func TestDateFormat(t *testing.T) {
	at := time.Date(2026, time.March, 7, 0, 5, 9, 42_900_000, time.FixedZone("CET", 3600))
	for _, tt := range []struct{ pattern, want, err string }{
		{"yyyy-MM-dd HH:mm:ss:SSS", "2026-03-07 00:05:09:042", ""},
		{"yy y yyyyy", "26 2026 02026", ""},
		{"M MM MMM MMMM", "3 03 Mar March", ""},
		{"d D u E EEEE", "7 66 6 Sat Saturday", ""},
		{"H k K h hh a", "0 24 0 12 12 AM", ""},
		{"S SS SSSSS", "42 42 00042", ""},
		{"z Z X XX XXX", "CET +0100 +01 +0100 +01:00", ""},
		{"yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2026-03-07T00:05:09.042+01:00", ""},
		{"hh 'o''clock' '' ''''", "12 o'clock ' ''", ""},
		{"", "", ""},
		{"qqq", "", "Illegal pattern character 'q'"},
		{"HH 'o", "", "Unterminated quote"},
		{"XXXX", "", "invalid ISO 8601 format: length=4"},
		{"ww", "", "--date-format: weeks are not supported ('w')"},
		{"G", "", "--date-format: eras are not supported ('G')"},
	} {
		t.Run(tt.pattern, func(t *testing.T) {
			f, err := parseDate(tt.pattern)
			assert.Must(t, (err == nil) == (tt.err == "") && (err == nil || err.Error() == tt.err), "error %v, want %q", err, tt.err)
			got := f.format(at)
			assert.True(t, err != nil || got == tt.want, "got %q, want %q", got, tt.want)
		})
	}
}

// Afternoons and zones.
func TestDateFormatOthers(t *testing.T) {
	f := assert.Value(parseDate("K h k a z X"))(t)
	assert.Equal(t, f.format(time.Date(2026, 1, 1, 13, 0, 0, 0, time.UTC)), "1 1 13 PM UTC Z")
	assert.Equal(t, f.format(time.Date(2026, 1, 1, 12, 0, 0, 0, time.FixedZone("-03", -10800))), "0 12 12 PM GMT-03:00 -03")
}

// Every pattern is either refused or formats a time.
func FuzzDateFormat(f *testing.F) {
	for _, pattern := range []string{"yyyy-MM-dd HH:mm:ss:SSS", "hh 'o''clock' a", "'", "''", "XXXX", "qqq", "EEEE MMMM z Z X u D k K", "\xff", "GGG"} {
		f.Add(pattern)
	}
	at := time.Date(2026, time.December, 31, 23, 59, 59, 999e6, time.UTC)
	f.Fuzz(func(t *testing.T, pattern string) {
		parts, err := parseDate(pattern)
		if err != nil {
			return
		}
		assert.True(t, parts.format(at) != "" || strings.Trim(pattern, "'") == "", "%q writes nothing", pattern)
	})
}
