package payload

import (
	"strconv"
)

// kind is the type of a value.
type kind uint8

const (
	kindInteger kind = iota // int64
	kindReal                // float64
	kindBool
	kindText
	kindDate   // milliseconds since 1970, as an integer
	kindFormat // of dates
	kindRandom // rnd
	kindSelf   // this
	kindNone   // no value
)

func (k kind) String() string {
	return [...]string{"an integer", "a real number", "true or false", "a text", "a date", "a date format", "rnd", "this", "nothing"}[k]
}

// traits are what an expression depends on.
type traits struct {
	varies bool // its value is not known before the run
	clock  bool // it reads the clock
	self   bool // it reads this.last()
	env    bool // it reads the environment
}

func (t traits) with(u traits) traits {
	return traits{t.varies || u.varies, t.clock || u.clock, t.self || u.self, t.env || u.env}
}

// A node is a compiled expression of one type; the function of its kind evaluates it.
type node struct {
	traits
	kind kind
	at   int // offset in the text

	integer func(c ctx) int64 // also of dates
	real    func(c ctx) float64
	truth   func(c ctx) bool
	text    func(c ctx, dst []byte) []byte

	single bool         // a real number of 32 bits
	most   int          // of texts: maximum bytes
	known  string       // of constant texts
	format *datePattern // of date formats

	isLast bool   // it is this.last()
	step   *int64 // it is this.last() and this constant
}

func integerNode(t traits, f func(c ctx) int64) node {
	return node{traits: t, kind: kindInteger, integer: f}.folded()
}

func realNode(t traits, f func(c ctx) float64) node {
	return node{traits: t, kind: kindReal, real: f}.folded()
}

func boolNode(t traits, f func(c ctx) bool) node {
	return node{traits: t, kind: kindBool, truth: f}.folded()
}

func textNode(t traits, most int, f func(c ctx, dst []byte) []byte) node {
	return node{traits: t, kind: kindText, most: most, text: f}.folded()
}

func integerOf(v int64) node { return integerNode(traits{}, constant(v)) }

func realOf(v float64) node { return realNode(traits{}, constant(v)) }

func boolOf(v bool) node { return boolNode(traits{}, constant(v)) }

func textOf(s string) node { return textNode(traits{}, len(s), constantText(s)) }

func constant[T any](v T) func(ctx) T { return func(ctx) T { return v } }

func constantText(s string) func(ctx, []byte) []byte {
	return func(_ ctx, dst []byte) []byte { return append(dst, s...) }
}

// folded replaces the evaluation of a node that does not vary by its value.
func (n node) folded() node {
	if n.varies {
		return n
	}
	switch n.kind {
	case kindInteger, kindDate:
		n.integer = constant(n.integer(ctx{}))
	case kindReal:
		n.real = constant(n.real(ctx{}))
	case kindBool:
		n.truth = constant(n.truth(ctx{}))
	case kindText:
		s := string(n.text(ctx{}, nil))
		n.known, n.most = s, len(s)
		n.text = constantText(s)
	}
	return n
}

// asReal returns a number as a real one.
func (n node) asReal() node {
	if n.kind != kindInteger {
		return n
	}
	f := n.integer
	return realNode(n.traits, func(c ctx) float64 { return float64(f(c)) }).placed(n.at)
}

// asInteger returns a number without its fraction.
func (n node) asInteger() node {
	if n.kind != kindReal {
		return n
	}
	f := n.real
	return integerNode(n.traits, func(c ctx) int64 { return truncated(f(c)) }).placed(n.at)
}

// The longest texts of numbers: -9223372036854775808 and -2.2250738585072014E-308.
const (
	maxInteger = 20
	maxReal    = 24
)

// asText returns a value as text, as Java prints it. ok is false for kinds that are not values.
func (n node) asText() (_ node, ok bool) {
	switch n.kind {
	case kindInteger:
		f := n.integer
		return textNode(n.traits, maxInteger, func(c ctx, dst []byte) []byte { return strconv.AppendInt(dst, f(c), 10) }).placed(n.at), true
	case kindReal:
		f, bits := n.real, 64
		if n.single {
			bits = 32
		}
		return textNode(n.traits, maxReal, func(c ctx, dst []byte) []byte { return appendReal(dst, f(c), bits) }).placed(n.at), true
	case kindBool:
		f := n.truth
		return textNode(n.traits, len("false"), func(c ctx, dst []byte) []byte { return strconv.AppendBool(dst, f(c)) }).placed(n.at), true
	case kindDate:
		return n.formatted(javaDate), true
	case kindText:
		return n, true
	}
	return n, false
}

// formatted returns the text of a date.
func (n node) formatted(p *datePattern) node {
	f := n.integer
	return textNode(n.traits, p.most, func(c ctx, dst []byte) []byte { return p.append(dst, f(c)) }).placed(n.at)
}

func (n node) placed(at int) node {
	n.at = at
	return n
}
