package payload

import (
	"strings"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokenEnd      tokenKind = iota // the closing brace
	tokenNumber                    // 12, 1.5, 1e6
	tokenText                      // in quotes; the token has the text itself
	tokenName                      // rnd
	tokenFunction                  // date:format
	tokenOperator                  // also ( ) , . ? :
)

type token struct {
	kind tokenKind
	text string
	at   int // offset in the text
}

// described returns a token for an error.
func (t token) described() string {
	switch t.kind {
	case tokenEnd:
		return "the end"
	case tokenText:
		return "a text"
	}
	return t.text
}

// operatorWords are the operators that are words.
var operatorWords = map[string]string{
	"and": "&&", "or": "||", "not": "!", "eq": "==", "ne": "!=",
	"lt": "<", "gt": ">", "le": "<=", "ge": ">=", "div": "/", "mod": "%",
}

// isNamespace reports whether functions' names begin with name and a colon.
func isNamespace(name string) bool {
	for i := range functions {
		if before, _, _ := strings.Cut(functions[i].name, ":"); before == name {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// next reads the next token. The expression ends at p.end, with a closing brace.
func (p *parser) next() error {
	for p.pos < p.end && strings.IndexByte(" \t\r\n", p.src[p.pos]) >= 0 {
		p.pos++
	}
	at := p.pos
	done := func(kind tokenKind, text string, end int) error {
		p.tok, p.pos = token{kind, text, at}, end
		return nil
	}
	if at >= p.end {
		return done(tokenEnd, "", at)
	}
	switch c := p.src[at]; {
	case isLetter(c):
		end := p.nameEnd(at)
		name := p.src[at:end]
		if op, ok := operatorWords[name]; ok {
			return done(tokenOperator, op, end)
		}
		if end+1 < p.end && p.src[end] == ':' && isLetter(p.src[end+1]) && isNamespace(name) {
			end = p.nameEnd(end + 1)
			return done(tokenFunction, p.src[at:end], end)
		}
		return done(tokenName, name, end)
	case isDigit(c):
		end := p.numberEnd(at)
		return done(tokenNumber, p.src[at:end], end)
	case c == '"' || c == '\'':
		text, end := p.quoted(at)
		if end == 0 {
			return p.errorf(at, "the text has no closing %c", c)
		}
		return done(tokenText, text, end)
	}
	for _, op := range [...]string{"==", "!=", "<=", ">=", "&&", "||"} {
		if strings.HasPrefix(p.src[at:p.end], op) {
			return done(tokenOperator, op, at+2)
		}
	}
	if strings.IndexByte("+-*/%<>!?:(),.", p.src[at]) >= 0 {
		return done(tokenOperator, p.src[at:at+1], at+1)
	}
	return p.errorf(at, "%q has no meaning here", p.src[at:at+1])
}

func (p *parser) nameEnd(at int) int {
	for at < p.end && (isLetter(p.src[at]) || isDigit(p.src[at])) {
		at++
	}
	return at
}

func (p *parser) numberEnd(at int) int {
	digits := func() {
		for at < p.end && isDigit(p.src[at]) {
			at++
		}
	}
	digits()
	if at+1 < p.end && p.src[at] == '.' && isDigit(p.src[at+1]) {
		at++
		digits()
	}
	if at < p.end && (p.src[at] == 'e' || p.src[at] == 'E') {
		exp := at + 1
		if exp < p.end && (p.src[exp] == '+' || p.src[exp] == '-') {
			exp++
		}
		if exp < p.end && isDigit(p.src[exp]) {
			at = exp
			digits()
		}
	}
	return at
}

// quoted reads a text in quotes; a backslash escapes a quote or a backslash. The
// end is 0 if there is none.
func (p *parser) quoted(at int) (text string, end int) {
	var b strings.Builder
	for i := at + 1; i < p.end; i++ {
		switch c := p.src[i]; {
		case c == p.src[at]:
			return b.String(), i + 1
		case c == '\\' && i+1 < p.end && strings.IndexByte(`\"'`, p.src[i+1]) >= 0:
			i++
			b.WriteByte(p.src[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", 0
}
