package dropin

import (
	"regexp"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

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
		out, err := JavaRegexp(in, false)
		assert.OK(t, err, "%s", in)
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
