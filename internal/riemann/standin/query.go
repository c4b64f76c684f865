package standin

import (
	"fmt"
	"strings"
)

// maxDepth is how deep parentheses and nots may be nested in a query. It bounds the
// stack.
const maxDepth = 500

// A query is a predicate over events. It is safe for concurrent use.
type query struct {
	root   node
	prefix string // the services of all matching events begin with it
}

// matches reports whether the query is true for an event. As in Clojure, every
// value is true except nil and false.
func (q query) matches(s *subject) bool { return q.root.eval(s).truth() }

// parseQuery parses the language of riemann's query.g4. Not binds tighter than
// and, which binds tighter than or. Names may contain signs, so operators need
// spaces around them: metric>2 is the name of a field, as in riemann.
func parseQuery(text string) (query, error) {
	p := &parser{lex: lexer{text: text}}
	p.advance()
	root := p.or()
	if p.err == nil && p.tok.kind != tokEnd {
		p.fail("want and, or or the end, found %s", p.tok)
	}
	if p.err != nil {
		return query{}, p.err
	}
	return query{root, servicePrefix(root)}, nil
}

// A queryError says where a text is not a valid query.
type queryError struct {
	text string
	at   int // in bytes
	what string
}

func (e *queryError) Error() string {
	// Users count characters, from one.
	return fmt.Sprintf("character %d: %s", strings.Count(e.text[:e.at], ""), e.what)
}

type parser struct {
	lex   lexer
	tok   token
	depth int
	err   error // the first one; after it, every token is tokEnd
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &queryError{p.lex.text, p.tok.at, fmt.Sprintf(format, args...)}
	}
	p.tok = token{kind: tokEnd, at: len(p.lex.text)}
}

func (p *parser) advance() {
	if p.err != nil {
		return
	}
	tok, err := p.lex.next()
	p.tok = tok
	if err != nil {
		p.fail("%v", err)
	}
}

// take consumes the next token if it is word, and reports whether it did.
func (p *parser) take(word string) bool {
	if p.tok.kind != tokWord || p.tok.text != word {
		return false
	}
	p.advance()
	return true
}

func (p *parser) or() node {
	all := []node{p.and()}
	for p.take("or") {
		all = append(all, p.and())
	}
	if len(all) == 1 {
		return all[0]
	}
	return orNode(all)
}

func (p *parser) and() node {
	all := []node{p.not()}
	for p.take("and") {
		all = append(all, p.not())
	}
	if len(all) == 1 {
		return all[0]
	}
	return andNode(all)
}

func (p *parser) not() node {
	if p.depth++; p.depth > maxDepth {
		p.fail("nested more than %d deep", maxDepth)
		return literal{}
	}
	defer func() { p.depth-- }()
	if p.take("not") {
		return notNode{p.not()}
	}
	if p.take("(") {
		inner := p.or()
		if !p.take(")") {
			p.fail("want and, or or ), found %s", p.tok)
		}
		return inner
	}
	return p.simple()
}

// simple parses a comparison, or a single value.
func (p *parser) simple() node {
	if p.take("tagged") {
		return taggedNode(p.pattern("tagged"))
	}
	left := p.value()
	if p.tok.kind != tokWord {
		return left
	}
	switch op := p.tok.text; op {
	case "=":
		p.advance()
		return equalNode{left, p.value()}
	case "!=":
		p.advance()
		return notNode{equalNode{left, p.value()}}
	case "<", ">", "<=", ">=":
		p.advance()
		if p.tok.kind != tokNumber {
			p.fail("want a number after %s, found %s", op, p.tok)
			return left
		}
		n := p.tok.value
		p.advance()
		return orderNode{op, left, n}
	case "=~":
		p.advance()
		return newLike(left, p.pattern(op))
	case "~=":
		p.advance()
		at := p.tok
		expr := p.pattern(op)
		n, err := newRegex(left, expr)
		if err != nil && p.err == nil {
			p.tok = at
			p.fail("%v", err)
		}
		return n
	default:
		return left
	}
}

// pattern parses the string that must follow an operator.
func (p *parser) pattern(op string) string {
	if p.tok.kind != tokString {
		p.fail("want a string in double quotes after %s, found %s", op, p.tok)
		return ""
	}
	s := p.tok.text
	p.advance()
	return s
}

func (p *parser) value() node {
	tok := p.tok
	switch tok.kind {
	case tokString:
		p.advance()
		return literal{value{kind: isString, text: tok.text}}
	case tokNumber:
		p.advance()
		return literal{tok.value}
	case tokName:
		p.advance()
		return newField(tok.text)
	case tokWord:
		switch tok.text {
		case "true", "false":
			p.advance()
			return literal{value{kind: isBool, whole: int64(len("false") - len(tok.text))}}
		case "nil", "null":
			p.advance()
			return literal{}
		}
	}
	p.fail("want a field, a string, a number, true, false or nil, found %s", tok)
	return literal{}
}
