package shell

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// The definitions of the tool's document.
var documented = names{
	"co":   "apm switch -fcmv $",
	"ones": "test 30s 1 1 1 1",
	"tens": "test 30s 10 10 10 1",
	"do":   "co ; ones ; tens",
}

func TestParse(t *testing.T) {
	long := names{"a": "b b", "b": "c c", "c": "d d", "d": "e e", "e": "f f", "f": "g g", "g": "x"}
	for _, c := range []struct {
		name  string
		names names
		line  string
		want  [][]string
		err   string
	}{
		{"the document's", documented, "do ; do master axw/trace-apm-server", [][]string{
			{"apm", "switch", "-fcmv", "master"},
			{"test", "30s", "1", "1", "1", "1"},
			{"test", "30s", "10", "10", "10", "1"},
			{"apm", "switch", "-fcmv", "axw/trace-apm-server"},
			{"test", "30s", "1", "1", "1", "1"},
			{"test", "30s", "10", "10", "10", "1"},
		}, ""},
		{"nothing", nil, "  ", nil, ""},
		{"two commands", nil, "status ; help", [][]string{{"status"}, {"help"}}, ""},
		{"a semicolon without blanks", nil, "a; b;c", [][]string{{"a;", "b;c"}}, ""},
		{"empty commands", nil, "; ; a ; ; b ;", [][]string{{"a"}, {"b"}}, ""},
		{"a name in any place", names{"big": "10 10"}, "test 30s big big 1", [][]string{{"test", "30s", "10", "10", "10", "10", "1"}}, ""},
		{"only whole words", names{"one": "1"}, "ones one", [][]string{{"ones", "1"}}, ""},
		{"two variables", names{"x": "a $ ; b $"}, "x 1 2", [][]string{{"a", "1"}, {"b", "2"}}, ""},
		{"words before the values stay", names{"x": "a $ ; b"}, "x y 1", [][]string{{"a", "1"}, {"b", "y"}}, ""},
		{"no value", names{"x": "a $"}, "x", nil, "too many variables"},
		{"values must come after the last one", names{"x": "a $ b $"}, "x 1", nil, "too many variables"},
		{"a variable without a name", nil, "apm switch $ master", [][]string{{"apm", "switch", "master"}}, ""},
		{"a name that means another, which means it", names{"a": "b", "b": "a"}, "a", nil, "too many substitutions (recursive definition?)"},
		{"too many, but not for ever", long, "a a", nil, "too many substitutions (recursive definition?)"},
		{"define in the middle", nil, "status ; define a b", nil, "define can only be the first word in a line"},
		{"a word that begins with define", nil, "defined", [][]string{{"defined"}}, ""},
		{"quotes", documented, `run 'a b' "c \"d\" \\" ones';' '$' "do" 'define'`, [][]string{{"run", "a b", `c "d" \`, "ones;", "$", "do", "define"}}, ""},
		{"an empty word", nil, `define2 ''`, [][]string{{"define2", ""}}, ""},
		{"a backslash", nil, `a\ b '\n'`, [][]string{{`a\`, "b", `\n`}}, ""},
		{"an open quote", nil, `status 'a`, nil, "a quote is not closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := c.names.parse(c.line)
			assert.Must(t, fmt.Sprint(err) == c.err || err == nil && c.err == "", "error %v, want %q", err, c.err)
			assert.True(t, reflect.DeepEqual(got, c.want), "commands %q, want %q", got, c.want)
		})
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct{ name, sent, want string }{
		{"LF, CR LF, CR NUL, CR", "a\nb\r\nc\r\x00d\re", "a|b|c|d|e|EOF"},
		{"empty lines", "\n\r\n\r\x00\r\rx\n", "||||" + "|x|EOF"},
		{"telnet", "\xff\xfd\x03\xff\xfa\x18\x00xterm\xff\xffz\xff\xf0he\xff\xf1lp\r\n", "help|EOF"},
		{"a telnet byte that is data", "a\xff\xffb\n", `the line has characters that are not text: a\xffb|EOF`},
		{"arrow keys", "a\x1b[A\nb\n", `the line has characters that are not text: a\x1b[A|b|EOF`},
		{"text that turns around", "a\u202eb\n", `the line has characters that are not text: a\u202eb|EOF`},
		{"other letters", "définir ä\t日本\n", "définir ä\t日本|EOF"},
		{"the longest", strings.Repeat("x", MaxLine) + "\n", strings.Repeat("x", MaxLine) + "|EOF"},
		{"too long", strings.Repeat("x", MaxLine+1) + "\nb\n", errLong.Error() + "|b|EOF"},
		{"a web page", "POST / HTTP/1.1\r\nHost: x\r\n\r\nquit\n", errHTTP.Error()},
		{"a web page with a long address", "GET /" + strings.Repeat("x", 2*MaxLine) + " HTTP/1.1\r\n", errHTTP.Error()},
		{"no web page", "GET ready\n", "GET ready|EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLineReader(strings.NewReader(c.sent))
			var got []string
			for {
				line, err := l.next()
				switch {
				case errors.Is(err, io.EOF):
					got = append(got, "EOF")
				case err != nil:
					got = append(got, err.Error())
				default:
					got = append(got, line)
				}
				if errors.Is(err, io.EOF) || errors.Is(err, errHTTP) {
					break
				}
			}
			assert.Equal(t, strings.Join(got, "|"), c.want, "lines")
		})
	}
}

// FuzzLines: whatever is sent, lines are text and not too long, and the reader ends.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"a\r\nb", "\xff\xfa\x01\xff\xf0x", "GET / HTTP/1.0\n", "\xff", "\r\x00\x00", "\x16\x03\x01"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		l := newLineReader(strings.NewReader(string(sent)))
		for range len(sent) + 2 {
			line, err := l.next()
			assert.Must(t, err != nil || len(line) <= MaxLine && isText(line) && !strings.ContainsAny(line, "\r\n\x00\x1b"),
				"line %q", line)
			assert.Must(t, err == nil || isText(err.Error()), "error %q", err)
			if errors.Is(err, io.EOF) || errors.Is(err, errHTTP) {
				return
			}
		}
		t.Fatal("the reader does not end")
	})
}

// Parsing ends, quote is the inverse of split, and a definition that was accepted parses again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"do ; do master x", "a $ $ 1 2", `'a b' "c\"d"`, "define x y $ ; z", "a ; define b", "''", `"\`} {
		f.Add(s, "y $ ; z")
	}
	f.Fuzz(func(t *testing.T, line, definition string) {
		if ws, err := split(line); err == nil {
			again, err := split(quote(ws))
			if err != nil || !reflect.DeepEqual(texts(again), texts(ws)) {
				t.Fatalf("split(%q) = %q, again %q, %v", line, texts(ws), texts(again), err)
			}
			for i := range ws {
				if special := ws[i].is(separator) || ws[i].is(placeholder); special != (again[i].is(separator) || again[i].is(placeholder)) {
					t.Fatalf("%q: word %d changed its meaning", line, i)
				}
			}
		}
		n := names{"do": "x ; do2", "do2": "$"}
		if ws, err := split(definition); err == nil && len(ws) > 0 {
			if _, err := n.set("y", ws); err == nil {
				assert.Value(split(n["y"]))(t, "the definition %q", n["y"])
			}
		}
		commands, _, _ := n.parse(line)
		for _, c := range commands {
			assert.Must(t, len(c) != 0, "%q: an empty command", line)
		}
	})
}

// FuzzPrintable: the result can be printed, and what can be printed stays.
func FuzzPrintable(f *testing.F) {
	f.Add("a\x1b[31m\x9b\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		p := Printable(s)
		assert.Must(t, isText(p) && !strings.Contains(p, "\t"), "Printable(%q) = %q", s, p)
		c := cleaner{to: func(text string) {
			assert.Must(t, isText(strings.ReplaceAll(text, "\n", "")), "cleaned %q: %q", s, text)
		}}
		c.Write([]byte(s))
		c.end()
	})
}
