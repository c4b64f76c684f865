package secret

import (
	"carronade/internal/testkit/assert"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// patterns are those that are tried only if a text has one of their stems.
var patterns = []struct {
	name string
	re   *regexp.Regexp
	all  stems
}{{"word", secretWord, wordStems}, {"auth", auth, authStems}, {"scheme", scheme, schemeStems}}

// maxTexts bounds the texts of one pattern.
const maxTexts = 200_000

// texts returns for each branch of a pattern the shortest texts that match it: each
// alternative, each character of a class that is not a long one, and without what may be
// missing.
func texts(t *testing.T, re *syntax.Regexp) (out []string) {
	t.Helper()
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1] && len(out) < 8; r++ {
				out = append(out, strings.ToLower(string(r)))
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	case syntax.OpConcat:
		out = []string{""}
		for _, sub := range re.Sub {
			var longer []string
			for _, end := range texts(t, sub) {
				for _, begin := range out {
					longer = append(longer, begin+end)
				}
			}
			if out = longer; len(out) > maxTexts {
				t.Fatalf("%s has too many texts", re)
			}
		}
		return out
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			out = append(out, texts(t, sub)...)
		}
		return out
	case syntax.OpQuest:
		return append([]string{""}, texts(t, re.Sub[0])...)
	case syntax.OpStar, syntax.OpEmptyMatch, syntax.OpWordBoundary, syntax.OpBeginText, syntax.OpEndText:
		return []string{""}
	case syntax.OpCapture, syntax.OpPlus:
		return texts(t, re.Sub[0])
	case syntax.OpRepeat:
		for _, one := range texts(t, re.Sub[0]) {
			out = append(out, strings.Repeat(one, re.Min))
		}
		return out
	default:
		t.Fatalf("%s: this operator is not known here", re)
		return nil
	}
}

// Every branch of the patterns has a stem.
func TestStemsCoverTheNames(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		all     stems
	}{{names, wordStems}, {keys, wordStems}, {pass, wordStems}, {word, wordStems}, {auth.String(), authStems}, {scheme.String(), schemeStems}} {
		re, err := syntax.Parse(tt.pattern, syntax.Perl)
		assert.OK(t, err)
		all := texts(t, re)
		for _, text := range all {
			assert.True(t, lower(text).mayHave(tt.all), "%q, of the pattern %.30s, has no stem", text, tt.pattern)
		}
		assert.True(t, len(all) >= 2, "%.30s has the texts %q only", tt.pattern, all)
	}
}

// Only two characters beyond ASCII match one of its letters.
func TestFoldedCharacters(t *testing.T) {
	for r := 'a'; r <= 'z'; r++ {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if got := lower(string(f)); string(got) != string(r) {
				t.Errorf("%q matches %q and becomes %q", f, r, got)
			}
		}
	}
	for _, text := range []string{"pa\u017f\u017fword=x", "to\u212aen=x", "\u00e4 password=x"} {
		assert.True(t, lower(text).mayHave(wordStems), "%q has no stem", text)
	}
	assert.True(t, !lower("a line of a log, \u00fcber alles").mayHave(wordStems), "a text with umlauts seems to have a stem")
}

// FuzzStems: a text without stems does not match.
func FuzzStems(f *testing.F) {
	for _, s := range []string{"password=x", "pa\u017f\u017fword=x", "to\u212aen=x", "Bearer abcd", "MY_AUTH=x", "auth: x", "a log line: x=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, p := range patterns {
			assert.True(t, !p.re.MatchString(s) || lower(s).mayHave(p.all), "%q matches %s and has none of its stems", s, p.name)
		}
	})
}

func BenchmarkMaskLine(b *testing.B) {
	var m Mask
	m.Add("kestrel-5519")
	line := `{"level":"info","@timestamp":"2026-11-23T02:00:00.000Z","logger":"request","message":"request ok","url":"/intake/v2/events","status":202}`
	for b.Loop() {
		m.Text(line)
	}
}
