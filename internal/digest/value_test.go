package digest

import (
	"errors"
	"testing"

	"carronade/target"
)

// hint is the hint of an error.
func hint(err error) string {
	var e *target.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

func TestValue(t *testing.T) {
	for _, tt := range []struct {
		v     Value
		show  string
		plain string
		json  any
	}{
		{Value{Kind: Count, Num: 1234567}, "1,234,567", "1234567", 1234567.0},
		{Value{Kind: Count, Num: -5}, "-5", "-5", -5.0},
		{Value{Kind: Share, Num: 0.733}, "73.3%", "0.733", 0.733},
		{Value{Kind: Duration, Num: 0.0123}, "12.3 ms", "0.0123", 0.0123},
		{Value{Kind: Size, Num: 4096}, "4 KiB", "4096", 4096.0},
		{Value{Kind: Speed, Num: 4096}, "4 KiB/s", "4096", 4096.0},
		{Value{Kind: Rate, Num: 50000, Text: "50k/s"}, "50k/s", "50000", 50000.0},
		{Value{Kind: Time, Num: 1526638860}, "2018-05-18 10:21:00", "2018-05-18T10:21:00Z", "2018-05-18T10:21:00Z"},
		{Value{Kind: Bool, Num: 1}, "true", "true", true},
		{Value{Text: "master"}, "master", "master", "master"},
		{Value{}, "", "", ""},
	} {
		if got := tt.v.String(); got != tt.show {
			t.Errorf("%+v is shown as %q, want %q", tt.v, got, tt.show)
		}
		if got := tt.v.Plain(); got != tt.plain {
			t.Errorf("%+v is plainly %q, want %q", tt.v, got, tt.plain)
		}
		if got := tt.v.Any(); got != tt.json {
			t.Errorf("%+v is %v in JSON, want %v", tt.v, got, tt.json)
		}
	}
}

func TestCompareValues(t *testing.T) {
	ascending := []Value{{Kind: Size, Num: -1, Text: "none"}, {Kind: Number, Num: 1}, {Kind: Number, Num: 20}, {Text: "10-20"}, {Text: "a"}, {Text: "b"}}
	for i, a := range ascending {
		for k, b := range ascending {
			want := 0
			switch {
			case i < k:
				want = -1
			case i > k:
				want = 1
			}
			if got := a.Compare(b); got != want {
				t.Errorf("%v against %v is %d, want %d", a, b, got, want)
			}
			if got := a.Equal(b); got != (i == k) {
				t.Errorf("%v equals %v: %v", a, b, got)
			}
		}
	}
	if !(Value{Kind: Duration, Num: 1, Text: "1s"}).Equal(Value{Kind: Duration, Num: 1, Text: "1000ms"}) {
		t.Error("1s is not 1000ms")
	}
}

func TestGuess(t *testing.T) {
	for text, want := range map[string]Kind{
		"10": Number, "-1": Number, "1.5": Number, "1e3": Number, "30s": Duration, "1KiB": Size, "2MB": Size, "true": Bool,
		"10k": Text, "10-20": Text, "lz4": Text, "": Text, "NaN": Text, "Inf": Text, "0x10": Text, "1.2.3": Text, "sha256:1": Text,
	} {
		if got := guess(text).Kind; got != want {
			t.Errorf("%q is a %s, want a %s", text, got, want)
		}
	}
}

// Reports made before ambiguous texts were refused keep the numbers that these meant.
func TestSettingsOfOlderReports(t *testing.T) {
	for _, test := range []struct {
		kind, text string
		want       Kind
		number     float64
	}{
		{"size", "64K", Size, 64 << 10},
		{"size", "1.5m", Size, 3 << 19},
		{"size", "64KB", Size, 64000},
		{"size", "2mb", Size, 2e6},
		{"size", "64KiB", Size, 64 << 10},
		{"size", "64kib", Size, 64 << 10},
		{"size", "64kB", Size, 64000},
		{"size", "100b", Size, 100},
		{"size", "1500", Size, 1500},
		{"size", "none", Text, 0},
		{"rate", "3m", Rate, 3e6},
		{"rate", "3/m", Rate, 0.05},
		{"rate", "50k/s", Rate, 50000},
	} {
		v := Typed(test.kind, test.text)
		if v.Kind != test.want || v.Num != test.number || v.Text != test.text {
			t.Errorf("%s %s: got %+v, want %v %v", test.kind, test.text, v, test.want, test.number)
		}
	}
}

func TestCanonical(t *testing.T) {
	for name, want := range map[string]string{
		"duration": "for", "limit": "system-mem", "report_id": "id", "revision_date": "revision_date", "latency": "per_batch",
		"response_p99.9": "response_p999", "end_to_end_p99.99": "end_to_end_p9999", "a_p1.5": "a_p1.5", "x": "x",
	} {
		if got := Canonical(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	for alias, name := range aliases {
		if !isKnown(name) {
			t.Errorf("%s is an alias of %s, which is not a field", alias, name)
		}
	}
}
