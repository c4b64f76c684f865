package workload

import (
	"carronade/internal/testkit/assert"
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostile are texts for which the parser would need seconds or minutes, of n bytes.
var hostile = []struct {
	name string
	make func(n int) string
	want string // in the error
}{
	{"brackets", repeated("["), "deep"},
	{"braces", repeated("{a: "), "deep"},
	{"both", repeated("[{"), "deep"},
	{"lists in lists", repeated("- "), "deep"},
	{"explicit keys", repeated("? "), "deep"},
	{"anchors", repeated("&a "), "anchors"},
	{"aliases", repeated("- *a\n"), "anchors"},
	{"tags", repeated("!a "), "tags"},
	{"a thousand millions of aliases", func(int) string {
		text := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
		for c := 'b'; c < 'j'; c++ {
			p := string(c - 1)
			text += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+p+",", 9) + "*" + p + "]\n"
		}
		return text
	}, "anchors"},
	{"keys", func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString("k" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + ":\n")
		}
		return b.String()
	}, ""},
	{"documents", repeated("---\n"), ""},
	{"ends of documents", repeated("...\n"), ""},
	{"entries", repeated("- 1\n"), "has more than 20000 tokens"},
	{"entries without values", repeated("-\n"), ""},
	{"empty lines after a text", func(n int) string { return "a: |\n b" + strings.Repeat("\n", n) }, "empty lines"},
	{"empty lines after a long text", func(n int) string { return "a: |\n " + strings.Repeat("b", n/2) + strings.Repeat("\n", n/2) }, "empty lines"},
	{"lines of blanks", func(n int) string { return "a: >\n b" + strings.Repeat("\n ", n/2) }, "empty lines"},
	{"empty lines after lines in column 1", columnOne("--- |\n"), "empty lines"},
	{"the same after a mapping", columnOne("a: b\n--- |\n"), "empty lines"},
	{"the same after a quote", columnOne("\"x\" |\n"), "empty lines"},
	{"the same after a blank", columnOne(" |\n"), "empty lines"},
	{"the same after a remark", columnOne("x # a\n |\n"), "empty lines"},
	{"the same after a tag", columnOne("!a |\n"), "empty lines"},
	{"empty lines of CR", func(n int) string { return "a: |\r b" + strings.Repeat("\r", n) }, "empty lines"},
	{"empty lines of CR and LF", func(n int) string { return "a: |\r\n b" + strings.Repeat("\r\n", n) }, "empty lines"},
	{"tabs in a text", func(n int) string { return "a: \"" + strings.Repeat("\t", n) + "x\"\n" }, "tabs"},
	{"tabs after a text in single quotes", func(n int) string { return "a: 'x'\nb: \"" + strings.Repeat("\t", n) + "x\"\n" }, "tabs"},
	{"tabs in what looks like single quotes", func(n int) string { return "a: \"\n b: 'x\", \"" + strings.Repeat("\t", n) + "x'\n" }, "tabs"},
	{"signs", func(n int) string { return "a: " + strings.Repeat("<", n) + "\n" }, "characters <"},
	{"runs of signs", func(n int) string { return "a: " + strings.Repeat(strings.Repeat("<", n/32)+" ", 32) + "\n" }, "characters <"},
	{"a long key", longKey("%s:\n"), "has a key of 32768 bytes"},
	{"a long key in quotes", longKey("\"%s\":\n"), "has a key of 32768 bytes"},
	{"a long key of its own", longKey("? %s\n:\n"), "has a key of 32768 bytes"},
	{"a long key and remarks", longKey("? # a\n %s # b\n:\n"), "has a key of 32768 bytes"},
	{"a long key in a flow", func(n int) string {
		return "{" + strings.Repeat("k", n/2) + ": [" + strings.Repeat("1,", n/4) + "1]}\n"
	}, "has a key of 32768 bytes"},
	{"dashes", repeated("-"), ""},
	{"quotes", repeated("'"), ""},
	{"quotes apart", repeated("' "), ""},
	{"open texts", repeated("a: \"b\n"), ""},
	{"escapes", repeated("\"\\q"), ""},
	{"directives", repeated("%a\n"), ""},
	{"colons", repeated(": "), ""},
	{"commas", repeated(","), ""},
	{"flow without values", func(n int) string { return "a: [" + strings.Repeat(",", n) + "]" }, ""},
	{"flow of keys", func(n int) string { return "{" + strings.Repeat("a,", n/2) + "}" }, ""},
	{"comments", repeated("#\n"), ""},
	{"tabs", repeated("\t"), ""},
	{"folded lines", repeated(" a\n"), ""},
	{"nothing", repeated("\n"), ""},
	{"zeros", repeated("\x00"), ""},
}

// columnOne returns a function that makes a block of text whose lines begin in column 1, and empty
// lines.
func columnOne(begin string) func(n int) string {
	return func(n int) string {
		return begin + strings.Repeat("b", n/2) + "\nb: c\n" + strings.Repeat("\n", n/2)
	}
}

// longKey returns a function that makes a mapping below a long key.
func longKey(form string) func(n int) string {
	return func(n int) string {
		text := fmt.Sprintf(form, strings.Repeat("k", n/2))
		for i := 0; len(text) < n; i++ {
			text += fmt.Sprintf("  a%d: 1\n", i)
		}
		return text
	}
}

func repeated(text string) func(n int) string {
	return func(n int) string { return strings.Repeat(text, n/len(text)+1)[:n] }
}

// TestHostile: no text of the size of a request takes long, and what is refused for its form says so.
func TestHostile(t *testing.T) {
	const size = 64 << 10
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := tt.make(size)
			began := time.Now()
			_, err := ParseDocuments("f.yaml", []byte(text))
			took := time.Since(began)
			t.Logf("%v", took)
			assert.True(t, took <= 10*time.Second, "it took %v", took)
			if err == nil || !strings.HasPrefix(err.Error(), "f.yaml") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want f.yaml and %q in an error", err, tt.want)
			}
		})
	}
}

// TestIndicators: a text that would make too many tokens is refused before any of them is made.
func TestIndicators(t *testing.T) {
	for _, text := range []string{"[", "{a", "- ", "a: b\n", "a\n", "''", ",", "? ", "a:\r", "{a:\n b: '[["} {
		t.Run(text, func(t *testing.T) {
			data := []byte("a: [" + strings.Repeat(text, 1<<20/len(text)))
			if len(text) > 3 {
				data = []byte(strings.Repeat(text, mostIndicators+1)) // a line is one token at least
			}
			if strings.HasPrefix(text, "{") && len(text) > 3 {
				data = []byte(text + strings.Repeat("[", mostIndicators) + "'") // no quote: it is behind a colon
			}
			const want = "has too many characters with a meaning in YAML"
			assert.ErrorHas(t, checkScan("f.yaml", data), want)
		})
	}
}

// TestLargeDocuments: bounds are far above what a workload needs.
func TestLargeDocuments(t *testing.T) {
	one := "- target: kafka://127.0.0.1:9092/orders\n  rate: 50k/s\n  for: 30s\n  header: [a=1, b=2]\n  label: {team: payments, n: 3}\n"
	for _, tt := range []struct{ name, text string }{
		{"many workloads", strings.Repeat(one, 500)},
		{"a long list", "target: null://\nlabel:\n" + strings.Repeat("  - a=1\n", 5000)},
		{"a long text", "target: null://\npayload: '" + strings.Repeat("x", 900<<10) + "'\n"},
		{"many empty lines", "target: null://\n" + strings.Repeat("\n\n# a remark\n\n", 1000) + "rate: 1/s\n"},
		{"two empty lines between workloads", strings.Repeat(one+"# "+strings.Repeat("x", 400)+"\n"+"\n\n\n", 500)},
		{"a remark, a beginning, and empty lines", "# a\n---\n" + strings.Repeat(one+"# "+strings.Repeat("x", 400)+"\n"+"\n\n\n", 500)},
		{"a text with tabs", "target: null://\npayload: '{\"a\":\"" + strings.Repeat(strings.Repeat("x", 50)+"\t", 12_000) + "\"}'\n"},
		{"a text with tabs in double quotes", "target: null://\npayload: \"" + strings.Repeat(strings.Repeat("x", 300)+"\t", 1000) + "\"\n"},
		{"a text with tabs, without quotes", "target: null://\npayload: x" + strings.Repeat(strings.Repeat("x", 50)+"\t", 12_000) + "x\n"},
		{"a text of JSON", "target: null://\npayload: '[1" + strings.Repeat(",1", 300_000) + "]'\n"},
		{"parts", "target: null://\nparts:\n" + strings.Repeat("  - weight: 1\n    header: [a=1]\n    label: {b: c}\n", 100)},
		{"as deep as can be", "- target: null://\n  parts:\n    - label:\n        - a=1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := ParseDocuments("f.yaml", []byte(tt.text)); err != nil {
				t.Error(err)
			}
		})
	}
}
