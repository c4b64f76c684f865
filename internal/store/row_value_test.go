package store

import (
	"testing"

	"carronade/test/testkit/assert"
)

func TestValue(t *testing.T) {
	for _, tt := range []struct {
		v           Value
		show, plain string
		json        any
	}{
		{Value{Kind: KindCount, Num: 1234567}, "1,234,567", "1234567", 1234567.0},
		{Value{Kind: KindCount, Num: -5}, "-5", "-5", -5.0},
		{Value{Kind: KindShare, Num: 0.733}, "73.3%", "0.733", 0.733},
		{Value{Kind: KindDuration, Num: 0.0123}, "12.3 ms", "0.0123", 0.0123},
		{Value{Kind: KindSize, Num: 4096}, "4 KiB", "4096", 4096.0},
		{Value{Kind: KindSpeed, Num: 4096}, "4 KiB/s", "4096", 4096.0},
		{Value{Kind: KindRate, Num: 50000, Text: "50k/s"}, "50k/s", "50000", 50000.0},
		{Value{Kind: KindRate, Num: 150.000000037, Text: "150.000000037/s"}, "150/s", "150.000000037", 150.000000037},
		{Value{Kind: KindRate, Num: 1200.0000003, Text: "1200.0000003/s"}, "1200/s", "1200.0000003", 1200.0000003},
		{Value{Kind: KindRate, Num: 1234.5678, Text: "1.2345678k/s"}, "1234.57/s", "1234.5678", 1234.5678},
		{Value{Kind: KindRate, Num: 1234.5678, Text: "1234.5678/s"}, "1234.5678/s", "1234.5678", 1234.5678},
		{Value{Kind: KindRate, Num: 1.23e6, Text: ">= 1.23 M/s"}, ">= 1.23 M/s", "1230000", 1.23e6},
		{Value{Kind: KindDuration, Num: 2.666666666, Text: "2.666666666s"}, "2.667s", "2.666666666", 2.666666666},
		{Value{Kind: KindDuration, Num: 0.012345678901, Text: "12.345678901ms"}, "12.346ms", "0.012345678901", 0.012345678901},
		{Value{Kind: KindDuration, Num: 90, Text: "90s"}, "90s", "90", 90.0},
		{Value{Text: "1.23456789"}, "1.23456789", "1.23456789", "1.23456789"},
		{Value{Kind: KindTime, Num: 1526638860}, "2018-05-18 10:21:00", "2018-05-18T10:21:00Z", "2018-05-18T10:21:00Z"},
		{Value{Kind: KindBool, Num: 1}, "true", "true", true},
		{Value{Text: "master"}, "master", "master", "master"},
		{Value{}, "", "", ""},
	} {
		assert.Equal(t, tt.v.String(), tt.show, "%+v is shown as", tt.v)
		assert.Equal(t, tt.v.Plain(), tt.plain, "%+v is plainly", tt.v)
		assert.Equal(t, tt.v.Any(), tt.json, "%+v in JSON", tt.v)
	}
}

func TestCompareValues(t *testing.T) {
	ascending := []Value{{Kind: KindSize, Num: -1, Text: "none"}, {Kind: KindNumber, Num: 1}, {Kind: KindNumber, Num: 20}, {Text: "10-20"}, {Text: "a"}, {Text: "b"}}
	for i, a := range ascending {
		for k, b := range ascending {
			want := 0
			switch {
			case i < k:
				want = -1
			case i > k:
				want = 1
			}
			assert.Equal(t, a.Compare(b), want, "%v against %v", a, b)
			assert.Equal(t, a.Equal(b), (i == k), "%v equals %v", a, b)
		}
	}
	if !(Value{Kind: KindDuration, Num: 1, Text: "1s"}).Equal(Value{Kind: KindDuration, Num: 1, Text: "1000ms"}) {
		t.Error("1s is not 1000ms")
	}
}

func TestGuess(t *testing.T) {
	for text, want := range map[string]ValueKind{
		"10": KindNumber, "-1": KindNumber, "1.5": KindNumber, "1e3": KindNumber, "30s": KindDuration, "1KiB": KindSize, "2MB": KindSize, "true": KindBool,
		"10k": KindText, "10-20": KindText, "lz4": KindText, "": KindText, "NaN": KindText, "Inf": KindText, "0x10": KindText, "1.2.3": KindText, "sha256:1": KindText,
	} {
		assert.Equal(t, guess(text).Kind, want, "%q is a", text)
	}
}

// Reports made before ambiguous texts were refused keep the numbers that these meant.
func TestSettingsOfOlderReports(t *testing.T) {
	for _, test := range []struct {
		kind, text string
		want       ValueKind
		number     float64
	}{
		{"size", "64K", KindSize, 64 << 10},
		{"size", "1.5m", KindSize, 3 << 19},
		{"size", "64KB", KindSize, 64000},
		{"size", "2mb", KindSize, 2e6},
		{"size", "64KiB", KindSize, 64 << 10},
		{"size", "64kib", KindSize, 64 << 10},
		{"size", "64kB", KindSize, 64000},
		{"size", "100b", KindSize, 100},
		{"size", "1500", KindSize, 1500},
		{"size", "none", KindText, 0},
		{"rate", "3m", KindRate, 3e6},
		{"rate", "3/m", KindRate, 0.05},
		{"rate", "50k/s", KindRate, 50000},
	} {
		v := TypedValue(test.kind, test.text)
		assert.True(t, v.Kind == test.want && v.Num == test.number && v.Text == test.text,
			"%s %s: got %+v, want %v %v", test.kind, test.text, v, test.want, test.number)
	}
}

func TestCanonical(t *testing.T) {
	for name, want := range map[string]string{
		"duration": "for", "limit": "system-mem", "report_id": "id", "revision_date": "revision_date", "latency": "per_batch",
		"response_p99.9": "response_p999", "end_to_end_p99.99": "end_to_end_p9999", "a_p1.5": "a_p1.5", "x": "x",
	} {
		assert.Equal(t, Canonical(name), want, "%s", name)
	}
	for alias, name := range aliases {
		assert.True(t, isKnown(name), "%s is an alias of %s, which is not a field", alias, name)
	}
}
