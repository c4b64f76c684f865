package standin

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kinds of tokens.
type tokenKind uint8

const (
	tokEnd    tokenKind = iota
	tokWord             // an operator, a parenthesis or a reserved word
	tokName             // of a field
	tokString           // text has its escapes resolved
	tokNumber
)

type token struct {
	kind  tokenKind
	at    int // where it begins, in bytes
	text  string
	value value // of a number
}

func (t token) String() string {
	switch t.kind {
	case tokEnd:
		return "the end"
	case tokString:
		return strconv.Quote(t.text)
	default:
		return t.text
	}
}

// reservedWords are the words and operators that are not names. A name that only
// begins with one is a name: the longest match wins, as in the real lexer.
var reservedWords = map[string]bool{
	"and": true, "or": true, "not": true, "tagged": true,
	"true": true, "false": true, "nil": true, "null": true,
	"=": true, "!=": true, "<": true, ">": true, "<=": true, ">=": true,
}

var (
	floating = regexp.MustCompile(`^-?(?:[0-9]+(?:\.[0-9]+(?:[eE]-?[0-9]+)?|[eE]-?[0-9]+)|Infinity|NaN)`)
	whole    = regexp.MustCompile(`^(-?[0-9]+)[lLnN]?`)
)

// A lexer splits a query into tokens by the lexer rules of query.g4.
type lexer struct {
	text string
	at   int
}

func (l *lexer) next() (token, error) {
	for l.at < len(l.text) && strings.IndexByte(" \n\r\t,", l.text[l.at]) >= 0 {
		l.at++
	}
	rest := l.text[l.at:]
	tok := token{at: l.at}
	if rest == "" {
		return tok, nil
	}
	switch {
	case rest[0] == '"':
		return l.str()
	case rest[0] == '(' || rest[0] == ')':
		tok.kind, tok.text = tokWord, rest[:1]
	case strings.HasPrefix(rest, "=~") || strings.HasPrefix(rest, "~="):
		tok.kind, tok.text = tokWord, rest[:2]
	default:
		name := rest[:nameLen(rest)]
		num, v, err := number(rest)
		switch {
		case err != nil:
			return tok, err
		case num != "" && len(num) >= len(name):
			tok.kind, tok.text, tok.value = tokNumber, num, v
		case reservedWords[name]:
			tok.kind, tok.text = tokWord, name
		case name != "":
			tok.kind, tok.text = tokName, name
		default:
			r, _ := utf8.DecodeRuneInString(rest)
			return tok, fmt.Errorf("unexpected %q", r)
		}
	}
	l.at += len(tok.text)
	return tok, nil
}

// nameLen is the length of the name that s begins with, by the rule NAME.
func nameLen(s string) int {
	n := 0
	for n < len(s) {
		c := s[n]
		switch {
		case c >= '0' && c <= '9':
			if n == 0 {
				return 0
			}
		case c == ':':
			// Only within a name, with more of the name after it.
			if n == 0 || n+1 == len(s) || s[n-1] == ':' || !nameByte(s[n+1]) {
				return n
			}
		case !nameByte(c):
			return n
		}
		n++
	}
	return n
}

func nameByte(c byte) bool { return strings.IndexByte("^`'\"#~@:/%()[]{} \n\r\t,", c) < 0 }

// number parses the number that s begins with. A big integer of Clojure becomes an
// integer if it fits into 64 bits, and a real number otherwise.
func number(s string) (text string, v value, err error) {
	if text = floating.FindString(s); text != "" {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil && !math.IsInf(f, 0) {
			return "", v, fmt.Errorf("%s is not a number", text)
		}
		return text, value{kind: isReal, real: f}, nil
	}
	m := whole.FindStringSubmatch(s)
	if m == nil {
		return "", v, nil
	}
	if i, err := strconv.ParseInt(m[1], 10, 64); err == nil {
		return m[0], value{kind: isWhole, whole: i}, nil
	}
	if !strings.HasSuffix(strings.ToLower(m[0]), "n") {
		return "", v, fmt.Errorf("%s does not fit into 64 bits", m[0])
	}
	f, err := strconv.ParseFloat(m[1], 64)
	if err != nil && !math.IsInf(f, 0) {
		return "", v, fmt.Errorf("%s is not a number", m[0])
	}
	return m[0], value{kind: isReal, real: f}, nil
}

// str parses a string with the escapes of Clojure's reader.
func (l *lexer) str() (token, error) {
	tok := token{kind: tokString, at: l.at}
	var b strings.Builder
	for i := l.at + 1; i < len(l.text); i++ {
		c := l.text[i]
		if c == '"' {
			l.at, tok.text = i+1, b.String()
			return tok, nil
		}
		if c != '\\' {
			b.WriteByte(c)
			continue
		}
		if i++; i == len(l.text) {
			break
		}
		switch c := l.text[i]; c {
		case '"', '\\':
			b.WriteByte(c)
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			digits := l.text[i+1 : min(i+5, len(l.text))]
			r, err := strconv.ParseUint(digits, 16, 16)
			if err != nil || len(digits) != 4 {
				return tok, fmt.Errorf(`\u wants four hexadecimal digits, found %q`, digits)
			}
			b.WriteRune(rune(r))
			i += 4
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := 1
			for n < 3 && i+n < len(l.text) && l.text[i+n] >= '0' && l.text[i+n] <= '7' {
				n++
			}
			r, err := strconv.ParseUint(l.text[i:i+n], 8, 8)
			if err != nil {
				return tok, fmt.Errorf(`\%s is more than \377`, l.text[i:i+n])
			}
			b.WriteRune(rune(r))
			i += n - 1
		default:
			r, _ := utf8.DecodeRuneInString(l.text[i:])
			return tok, fmt.Errorf(`unknown escape \%c; write a backslash as \\`, r)
		}
	}
	return tok, fmt.Errorf("a string without its closing quote")
}
