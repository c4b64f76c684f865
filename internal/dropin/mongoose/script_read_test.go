package mongoose

import (
	"strings"
	"testing"

	"carronade/internal/scenario"
	"carronade/test/testkit/assert"
)

// A script with a syntax error is repaired in one way; with commas in two.
func TestParseScript(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		strict    bool
		commas    bool
		text      string   // that is run; "": src
		warnings  []string // their ends
		wrong     string   // the error
	}{
		{name: "right", src: `x = "${f("` + `a` + `")}"`, text: `x = "${f(\"a\")}"`, warnings: []string{`s.js:1:5: quotes inside of an expression belong to the text: it was read as "${f(\"a\")}"`}},
		{name: "legal", src: `x = "${" + y + "}"`},
		{name: "legal beside an error", src: "x = \"${\" + y + \"}\"\nz = '%{f('a')}'", text: "x = \"${\" + y + \"}\"\nz = '%{f(\\'a\\')}'", warnings: []string{`it was read as '%{f(\'a\')}'`}},
		{name: "several", src: "a = {\n'x': \"#{f(\"1\")}\",\n'y': \"${g(\"2\", \"}\")}\"\n}", text: "a = {\n'x': \"#{f(\\\"1\\\")}\",\n'y': \"${g(\"2\", \"}\")}\"\n}", wrong: "s.js:3:"},
		{name: "escaped already", src: `x = "${f(\"a\", "b")}"`, text: `x = "${f(\"a\", \"b\")}"`, warnings: []string{`\"b\")}"`}},
		{name: "strict", src: `x = "${f("a")}"`, strict: true, wrong: "s.js:1:11: syntax error: "},
		{name: "no end", src: `x = "${f("a"`, wrong: "s.js:1:11: syntax error: "},
		{name: "in a comment", src: "// \"${f(\"a\")}\nx = ;", wrong: "s.js:2:5: "},
		{name: "a comma", src: "x = {\n\t\"a\": {\"b\": 1}\n\t\"c\": 2\n}", wrong: `s.js:2:15: a comma is missing after "a": {...}`},
		{name: "a comma, inserted", src: "x = {\n\t\"a\": {\"b\": 1}\n\tc: [1]\n\td: 3\n}", commas: true, text: "x = {\n\t\"a\": {\"b\": 1},\n\tc: [1],\n\td: 3\n}", warnings: []string{`s.js:2:15: a comma is missing after "a": {...}: it was inserted`, "s.js:3:8: a comma is missing after c: [...]: it was inserted"}},
		{name: "a comma after a number", src: "x = {a: 1\nb: 2}", wrong: "s.js:1:10: a comma is missing after a: 1"},
		{name: "another error", src: "x = {a: 1", commas: true, wrong: "s.js:1:10: syntax error: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, got, err := parseScript(&scenario.Script{Path: "s.js", Source: tt.src}, tt.strict, tt.commas)
			if tt.wrong != "" {
				assert.True(t, err != nil && strings.HasPrefix(err.Error(), tt.wrong), "error %v, want %s", err, tt.wrong)
				return
			}
			want := tt.text
			if want == "" {
				want = tt.src
			}
			ok := err == nil && got.text == want && len(got.warnings) == len(tt.warnings)
			for i, end := range tt.warnings {
				ok = ok && strings.HasSuffix(got.warnings[i], end)
			}
			assert.True(t, ok, "%v\ngot  %s\nwant %s\nwarnings %q", err, got.text, want, got.warnings)
		})
	}
}

// The names in a script are those outside of comments and strings, but inside of templates.
func TestWords(t *testing.T) {
	got := make(map[string]bool)
	words("a.b /* c */ 'd' + `e ${f}` // g\n= /h\\/[/]/.i\n\"j\\\" k\" l", got)
	for name, want := range map[string]bool{"a": true, "b": true, "c": false, "d": false, "e": true, "f": true, "g": false, "h": false, "i": true, "j": false, "k": false, "l": true} {
		assert.Equal(t, got[name], want, "%s", name)
	}
}

// Any text is read without a panic and in bounded time, and what is read without a warning is
// the text itself.
func FuzzScript(f *testing.F) {
	for _, src := range []string{`Load.run()`, `x = "${f("a")}"`, "x = {\n'a': {}\n'b': 1}", "`${`${'a'}`}`", `/[/]\//`, "'\\", "\"%{", "{a:1 b:2 c:3}"} {
		f.Add(src, true)
	}
	f.Fuzz(func(t *testing.T, src string, commas bool) {
		s := &scenario.Script{Path: "s.js", Source: src}
		_, got, err := parseScript(s, false, commas)
		assert.True(t, err != nil || len(got.warnings) > 0 || got.text == src,
			"%q was changed to %q without a warning", src, got.text)
		words(src, make(map[string]bool))
	})
}
