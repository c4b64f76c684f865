package shell

import (
	"errors"
	"strings"
	"unicode"
)

// A word of a line. A word with quotes is only text: it is neither a name nor a
// placeholder nor a separator.
type word struct {
	text   string
	quoted bool
}

const (
	separator   = ";"
	placeholder = "$"
)

func (w word) is(special string) bool { return !w.quoted && w.text == special }

var errQuote = errors.New("a quote is not closed")

// split returns the words of a line. Blanks separate words, except within single or
// double quotes. Within double quotes, \" and \\ are a quote and a backslash;
// elsewhere a backslash is an ordinary character.
func split(line string) ([]word, error) {
	var (
		out    []word
		b      strings.Builder
		in     bool // within a word
		quoted bool
		quote  rune // the open one, or 0
		escape bool
	)
	for _, r := range line {
		switch {
		case escape:
			if r != '"' && r != '\\' {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
			escape = false
		case quote == '"' && r == '\\':
			escape = true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			b.WriteRune(r)
		case r == '\'' || r == '"':
			quote, quoted, in = r, true, true
		case unicode.IsSpace(r):
			if in {
				out = append(out, word{b.String(), quoted})
				b.Reset()
				in, quoted = false, false
			}
		default:
			b.WriteRune(r)
			in = true
		}
	}
	if quote != 0 {
		return nil, errQuote
	}
	if in {
		out = append(out, word{b.String(), quoted})
	}
	return out, nil
}

// quote returns words as a line from which split returns the same words.
func quote(ws []word) string {
	parts := make([]string, len(ws))
	for i, w := range ws {
		parts[i] = w.text
		switch {
		case !w.quoted && w.text != "" && !strings.ContainsFunc(w.text, func(r rune) bool { return r == '\'' || r == '"' || unicode.IsSpace(r) }):
		case !strings.Contains(w.text, "'"):
			parts[i] = "'" + w.text + "'"
		default:
			parts[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w.text) + `"`
		}
	}
	return strings.Join(parts, " ")
}

func texts(ws []word) []string {
	out := make([]string, len(ws))
	for i, w := range ws {
		out[i] = w.text
	}
	return out
}

// typed returns arguments as they can be typed.
func typed(args []string) string {
	ws := make([]word, len(args))
	for i, a := range args {
		ws[i] = word{text: a, quoted: a == separator || a == placeholder}
	}
	return quote(ws)
}
