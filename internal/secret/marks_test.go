package secret

import (
	"regexp/syntax"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// texts returns the shortest texts that match each branch of a pattern, with the first character
// of each class.
func texts(t *testing.T, re *syntax.Regexp) []string {
	t.Helper()
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCharClass:
		return []string{string(re.Rune[0])}
	case syntax.OpConcat:
		out := []string{""}
		for _, sub := range re.Sub {
			var longer []string
			for _, begin := range out {
				for _, end := range texts(t, sub) {
					longer = append(longer, begin+end)
				}
			}
			out = longer
		}
		return out
	case syntax.OpAlternate:
		var out []string
		for _, sub := range re.Sub {
			out = append(out, texts(t, sub)...)
		}
		return out
	case syntax.OpQuest:
		return append([]string{""}, texts(t, re.Sub[0])...)
	case syntax.OpCapture:
		return texts(t, re.Sub[0])
	}
	t.Fatalf("%s: this operator is not known here", re)
	return nil
}

// Every name of a secret, and what else begins one, has three characters of the marks, so that the
// scanner looks at it.
func TestMarks(t *testing.T) {
	re := assert.Value(syntax.Parse(names, syntax.Perl))(t)
	all := append(texts(t, re), `a_pw=`, `pw: `, `"pw"`, `'pw'`, `dbpass`, `p\u0061`, `p\x61s`, ` -u `, ` --user`, ` --login`, ` --proxy-user`, `x://`, `x:\/\/`, `x\://`, `bearer`, `apikey`, `basic`, `loginmodule`, `?sig=`, `?code=`, `?key=`, `x_auth`)
	for _, program := range loginPrograms {
		all = append(all, program+" ")
	}
	for program := range passwordFlags {
		all = append(all, program+" ")
	}
	streams := withKey.String()
	streams = streams[strings.Index(streams, "pager"):]
	for stream := range strings.SplitSeq(streams[:strings.Index(streams, ")")], "|") {
		all = append(all, "("+stream, "(x/"+stream)
	}
	for _, text := range all {
		found := false
		for i := 2; i < len(text); i++ {
			gram := int(text[i-2]&31)<<10 | int(text[i-1]&31)<<5 | int(text[i]&31)
			found = found || marks[gram>>6]>>(gram&63)&1 != 0
		}
		assert.True(t, found, "%q has no mark", text)
	}
	assert.True(t, len(all) >= 200, "only %d texts", len(all))
}
