package dropin

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// A tool is found by its name, by an alias, and by the names of their files.
func TestFind(t *testing.T) {
	tools := []Tool{{Name: "kafka-topics"}, {Name: "mongoose", Aliases: []string{"mongoose-base"}}}
	for called, want := range map[string]string{
		"mongoose": "mongoose", "/usr/bin/mongoose": "mongoose", "./mongoose.jar": "mongoose", "mongoose.exe": "mongoose",
		"mongoose-base": "mongoose", "mongoose-base-4.2.11.jar": "mongoose", "kafka-topics.sh": "kafka-topics",
		"mongoose-4.2": "", "mongoose-base-next.jar": "", "topics": "", "carronade": "", "": "",
	} {
		got := ""
		if tool, ok := Find(tools, called); ok {
			got = tool.Name
		}
		assert.Equal(t, got, want, "%q finds", called)
	}
}

// Kafka's own runner runs what its first argument names.
func TestRunsOthers(t *testing.T) {
	for called, want := range map[string]bool{"kafka-run-class": true, "./bin/kafka-run-class.sh": true, "kafka-run": false, "carronade": false} {
		assert.Equal(t, RunsOthers(called), want, "%q", called)
	}
}

// Carronade's flags are taken out wherever they stand before "--"; the rest is the tool's, in order.
func TestSplit(t *testing.T) {
	dashes, one := &Tool{}, &Tool{OneDash: true}
	for _, tt := range []struct {
		tool      *Tool
		args, own string
		want      Common
		err       string
	}{
		{dashes, "--topic t --store a.db --label a=b --count 3 --label=c=d", "--topic t --count 3", Common{Keep: []Setting{{"store", "--store", "a.db"}, {"label", "--label", "a=b"}, {"label", "--label", "c=d"}}}, ""},
		{dashes, "--no-store --strict x --generation 4.1 --report-json=r", "x", Common{Strict: true, Generation: "4.1", ReportJSON: "r", Keep: []Setting{{"no-store", "--no-store", "true"}}}, ""},
		{dashes, "-store s -label l --labels m --storage n", "-store s -label l --labels m --storage n", Common{}, ""},
		{one, "-size 3 -store a.db -no-store=false --label a=b", "-size 3", Common{Keep: []Setting{{"store", "--store", "a.db"}, {"no-store", "--no-store", "false"}, {"label", "--label", "a=b"}}}, ""},
		{one, "-strict -e store - -- -store", "-e store - -- -store", Common{Strict: true}, ""},
		{dashes, "x --store", "", Common{}, "--store needs a value"},
		{dashes, "--no-store=maybe", "", Common{}, "--no-store=maybe: must be true or false"},
	} {
		own, got, err := tt.tool.Split(strings.Fields(tt.args))
		if tt.err != "" {
			assert.True(t, err != nil && err.Error() == tt.err, "%q: error %v, want %q", tt.args, err, tt.err)
			continue
		}
		assert.True(t, err == nil && slices.Equal(own, strings.Fields(tt.own)) && reflect.DeepEqual(got, tt.want),
			"%q: %q, %+v, %v, want %q, %+v", tt.args, own, got, err, tt.own, tt.want)
	}
}

func TestWriteWarnings(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    report.Document
		want string
	}{
		{"none", report.Document{Trust: measure.Trust{OK: true}, Checks: []report.Check{{Name: "failures", OK: true, Text: "0"}}}, ""},
		{"noisy", report.Document{Trust: measure.Trust{OK: true, Level: measure.Noisy, Doubts: []string{"a little late"}}}, "warning: noisy: a little late\n"},
		{"all", report.Document{
			Problems: []string{"nothing was acked"}, Trust: measure.Trust{Reasons: []string{"it was late", "it froze"}},
			Checks: []report.Check{{Name: "failures", Text: "at most 0, and there were 3"}},
		}, "warning: nothing was acked\nwarning: not to be trusted: it was late; it froze\nwarning: failures: at most 0, and there were 3\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			if WriteWarnings(&b, &tt.d); b.String() != tt.want {
				t.Errorf("got %q, want %q", b.String(), tt.want)
			}
		})
	}
}

// An element of the sorted times is found by its number.
func TestNthTime(t *testing.T) {
	h := measure.NewHistogram()
	assert.Equal(t, NthTime(h, 0), 0, "the time of none")
	h.RecordN(time.Millisecond, 3)
	h.RecordN(2*time.Millisecond, 2)
	for n, want := range map[uint64]time.Duration{0: time.Millisecond, 2: time.Millisecond, 3: 2 * time.Millisecond, 4: 2 * time.Millisecond, 9: 2 * time.Millisecond} {
		got := NthTime(h, n)
		assert.True(t, (got-want).Abs() <= want/1000, "element %d is %v, want %v", n, got, want)
	}
}

// Numbers in Java's format.
func TestJavaDouble(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0.0", 1: "1.0", -2.5: "-2.5", 0.673: "0.673", 93.913: "93.913", 0.8399880000000001: "0.8399880000000001", 12345: "12345.0",
		0.001: "0.001", 0.00012: "1.2E-4", 3.5356e-4: "3.5356E-4", 9999999: "9999999.0", 8494458.703573164: "8494458.703573164",
		1e7: "1.0E7", 12345678.5: "1.23456785E7", 123456789: "1.23456789E8", math.Inf(1): "Infinity", math.Inf(-1): "-Infinity",
	} {
		assert.Equal(t, JavaDouble(x), want, "%g", x)
	}
	assert.Equal(t, JavaDouble(math.NaN()), "NaN", "NaN")
}

// Each expression splits the text as Java 17 does.
func TestJavaRegexp(t *testing.T) {
	const text = "a,b\vc\u00a0d\u2028e\r\nf\x1eg\u00e9h A"
	for in, want := range map[string]string{
		`,`: "a|b\vc\u00a0d\u2028e\r\nf\x1eg\u00e9h A", `\v`: "a,b|c\u00a0d|e||f\x1eg\u00e9h A", `\R`: "a,b|c\u00a0d|e|f\x1eg\u00e9h A",
		`\h`: "a,b\vc|d\u2028e\r\nf\x1eg\u00e9h|A", `\s`: "a,b|c\u00a0d\u2028e||f\x1eg\u00e9h|A", `[a-h&&[^b-d]]`: "|,b\vc\u00a0d\u2028|\r\n|\x1e|\u00e9| A",
		`\u001e`: "a,b\vc\u00a0d\u2028e\r\nf|g\u00e9h A", `\x{e9}|\054`: "a|b\vc\u00a0d\u2028e\r\nf\x1eg|h A", `\xe9`: "a,b\vc\u00a0d\u2028e\r\nf\x1eg|h A", `[\v,]`: "a|b|c\u00a0d|e||f\x1eg\u00e9h A",
		`.`: "|||||||\u2028|\r\n|||||||", `\cM\cJ`: "a,b\vc\u00a0d\u2028e|f\x1eg\u00e9h A", `(?i)[^a-z]+`: "a|b|c|d|e|f|g|h|A", `\S+`: "|\v|\r\n| |",
		`[\w&&[^\d_a-c]]`: "a,b\vc\u00a0|\u2028|\r\n|\x1e|\u00e9| |", `[^a-h&&[^,]]+`: "a|b|c|d|e|f|g|h|", `\p{Space}+`: "a,b|c\u00a0d\u2028e|f\x1eg\u00e9h|A",
		`\P{ASCII}`: "a,b\vc|d|e\r\nf\x1eg|h A", `\p{IsLatin}{1,2}?`: "|,|\v|\u00a0|\u2028|\r\n|\x1e||| |", `\Qa,b\E`: "|\vc\u00a0d\u2028e\r\nf\x1eg\u00e9h A", `\é`: "a,b\vc\u00a0d\u2028e\r\nf\x1eg|h A",
		`[[:alpha:],]`: "||b\vc\u00a0d\u2028e\r\nf\x1eg\u00e9| A", `(?s)\x0b.`: "a,b|\u00a0d\u2028e\r\nf\x1eg\u00e9h A",
	} {
		out := assert.Value(JavaRegexp(in, false))(t, "%s", in)
		parts := regexp.MustCompile(out).Split(text, -1)
		assert.Equal(t, strings.Join(parts, "|"), want, "%s, which is %s", in, out)
	}
	for in, want := range map[string]string{
		`x++`: "possessive", `x{2}+`: "possessive", `(?=x)`: "look-around", `(?<!x)y`: "look-around", `(?>x)`: "an atomic group", `(a)\1`: "a back reference", `\k<n>`: "a back reference",
		`a$`: "the end of a line", `\Z`: "last line end", `\bx`: "a boundary", `\N{DIGIT ONE}`: "name of a character", `\X`: "a grapheme", `\G`: "match before", `(?x)a`: "a flag", `(?im)a`: "a flag",
		`a(?s).`: "a flag", `{`: `write \{`, `x{,3}`: `write \{`, `\y`: "an escape that Java does not have", `\u12`: "an escape that Java does not have", `\ud83d`: "half of a pair", `[a-`: "open brackets",
		`[a`: "open brackets", `[a&&]`: "nothing after &&", `[&&a]`: "nothing before &&", `[a&&&b]`: "a third &", `[\Qa\E]`: "an escape in brackets", `[b-a]`: "invalid range", `[a-\d]`: "invalid range",
		`\p{InGreek}`: "a set of Java's", `\p{`: "an open property", `\`: `it ends in \`, `[\`: "an escape in brackets", `(?i)[a[b]]`: "after (?i)", `(`: "missing closing )", `*`: "missing argument",
	} {
		_, err := JavaRegexp(in, false)
		assert.ErrorHas(t, err, want, "%s", in)
	}
	for _, in := range []string{"orders-.*", `a\b$`, "[-,]+", "(?<n>x)"} {
		out, err := JavaRegexp(in, true)
		assert.True(t, err == nil && out == in, "%s is %s (%v), want no change", in, out, err)
	}
}

// Every text ends, with an expression that RE2 reads or an error.
func FuzzJavaRegexp(f *testing.F) {
	for _, in := range []string{`[a-c&&[^b]]`, `\u001e`, `\p{Lower}+?`, `[^\s\x{1F600}-\uD83D\uDE02]`, `(?i)\Qa\E\07`} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if out, err := JavaRegexp(in, false); err == nil {
			assert.Value(regexp.Compile(out))(t)
		}
	})
}
