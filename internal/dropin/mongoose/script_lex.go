package mongoose

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The kinds of tokens.
const (
	wordToken  = 'w' // a name, a keyword or a number
	textToken  = '"' // a string, a template or a regular expression
	punctToken = '.'
)

// A token is a token of a script, without comments and white space.
type token struct {
	kind       byte
	start, end int
}

// tokens splits a script as well as an error in it allows. A string ends where end says, given
// the offset of its first quote.
func tokens(src string, end func(src string, i int) int) (out []token) {
	for i := 0; i < len(src); {
		start, c := i, src[i]
		r, n := utf8.DecodeRuneInString(src[i:])
		switch {
		case unicode.IsSpace(r) || r == '\ufeff':
			i += n
			continue
		case strings.HasPrefix(src[i:], "//"):
			i += lineLength(src[i:])
			continue
		case strings.HasPrefix(src[i:], "/*"):
			i = len(src)
			if n := strings.Index(src[start+2:], "*/"); n >= 0 {
				i = start + 2 + n + 2
			}
			continue
		case c == '"' || c == '\'':
			i = end(src, i)
			out = append(out, token{textToken, start, i})
		case c == '`':
			i = templateEnd(src, i)
			out = append(out, token{textToken, start, i})
		case c == '/' && regexpAfter(src, out):
			i = regexpEnd(src, i)
			out = append(out, token{textToken, start, i})
		case isWord(r):
			for i < len(src) {
				if r, n = utf8.DecodeRuneInString(src[i:]); !isWord(r) {
					break
				}
				i += n
			}
			out = append(out, token{wordToken, start, i})
		default:
			i += n
			out = append(out, token{punctToken, start, i})
		}
	}
	return out
}

// words adds the names that a script mentions to a set.
func words(src string, names map[string]bool) {
	for _, t := range tokens(src, stringEnd) {
		switch text := src[t.start:t.end]; {
		case t.kind == wordToken:
			names[text] = true
		case text[0] == '`' && len(text) > 2:
			words(text[1:len(text)-1], names)
		}
	}
}

// isWord reports whether a character belongs to a name or a number. The point of a number is
// a token of its own.
func isWord(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// lineLength is the number of bytes before the end of the line.
func lineLength(s string) int {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		return i
	}
	return len(s)
}

// stringEnd is the offset after the string that begins at i, or that of the end of its line.
func stringEnd(src string, i int) int {
	quote := src[i]
	for i++; i < len(src); i++ {
		switch src[i] {
		case quote:
			return i + 1
		case '\\':
			if i+1 < len(src) {
				i++ // also the end of a line: the string continues
			}
		case '\r', '\n':
			return i
		}
	}
	return len(src)
}

// templateEnd is the offset after the template that begins at i.
func templateEnd(src string, i int) int {
	for i++; i < len(src); i++ {
		switch {
		case src[i] == '`':
			return i + 1
		case src[i] == '\\':
			i++
		case strings.HasPrefix(src[i:], "${"):
			depth := 1
			for i += 2; i < len(src) && depth > 0; i++ {
				switch src[i] {
				case '{':
					depth++
				case '}':
					depth--
				case '"', '\'':
					i = stringEnd(src, i) - 1
				}
			}
			i--
		}
	}
	return len(src)
}

// regexpAfter reports whether a slash after these tokens begins a regular expression: after
// an operator or an opening bracket, and after a keyword.
func regexpAfter(src string, before []token) bool {
	if len(before) == 0 {
		return true
	}
	last := before[len(before)-1]
	text := src[last.start:last.end]
	switch last.kind {
	case wordToken:
		return text == "return" || text == "typeof" || text == "case" || text == "in"
	case textToken:
		return false
	}
	return text != ")" && text != "]" && text != "}"
}

// regexpEnd is the offset after the regular expression that begins at i.
func regexpEnd(src string, i int) int {
	class := false
	for i++; i < len(src); i++ {
		switch c := src[i]; {
		case c == '\r' || c == '\n':
			return i
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			return i + 1
		}
	}
	return len(src)
}
