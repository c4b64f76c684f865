package payload

import (
	"fmt"
	"math"
	"strings"
)

// A value is a name that stands for a value.
type value struct {
	name, result, help string
	node               func() node
}

var expressionValues = []value{
	{"e", "real", "2.718281828459045", func() node { return realOf(math.E) }},
	{"pi", "real", "3.141592653589793", func() node { return realOf(math.Pi) }},
	{"lineSep", "text", "a line feed", func() node { return textOf("\n") }},
	{"pathSep", "text", "a colon", func() node { return textOf(":") }},
	{"true", "true or false", "", func() node { return boolOf(true) }},
	{"false", "true or false", "", func() node { return boolOf(false) }},
	{"rnd", "", "", func() node { return node{kind: kindRandom} }},
	{"this", "", "", func() node { return node{kind: kindSelf} }},
}

func valueNamed(name string) *value {
	for i := range expressionValues {
		if expressionValues[i].name == name {
			return &expressionValues[i]
		}
	}
	return nil
}

func valueNames() string {
	var names []string
	for i := range expressionValues {
		names = append(names, expressionValues[i].name)
	}
	return strings.Join(names, ", ")
}

// methods are the methods, by the kind of what they belong to.
var methods = map[kind][]function{
	kindFormat: {{
		name: "format", params: []param{{name: "date", kind: kindDate}}, result: "text", help: "a date in a date format",
	}},
	kindRandom: {
		{
			name: "nextInt", params: []param{{name: "n", kind: kindInteger, optional: true}}, result: "integer",
			help: "random, from 0 to n-1; without n any integer of 32 bits",
			make: func(b *builder, args []node) (node, error) {
				if len(args) == 0 {
					seed := b.site()
					return integerNode(traits{varies: true}, func(c ctx) int64 { return narrowed(int64(mix(seed, c.event))) }), nil
				}
				n := args[0].integer
				if !args[0].varies && n(ctx{}) > math.MaxInt32 {
					return node{}, &TemplateError{args[0].at + 1, "rnd.nextInt draws below 2^31: take rnd.nextLong"}
				}
				limited := integerNode(args[0].traits, func(c ctx) int64 { return min(n(c), math.MaxInt32) })
				return drawNode(b, "rnd.nextInt", []node{limited.placed(args[0].at)})
			},
		},
		{
			name: "nextLong", params: []param{{name: "n", kind: kindInteger, optional: true}}, result: "integer",
			help: "the same with 64 bits",
			make: func(b *builder, args []node) (node, error) { return drawNode(b, "rnd.nextLong", args) },
		},
		{
			name: "nextDouble", result: "real", help: "random, from 0 to less than 1",
			make: func(b *builder, _ []node) (node, error) {
				seed := b.site()
				return realNode(traits{varies: true}, func(c ctx) float64 { return float64(mix(seed, c.event)>>11) / (1 << 53) }), nil
			},
		},
	},
	kindSelf: {{
		name: "last", result: "integer or real", help: "the value of this expression for the event before; for the first one its initial value, as in ${this.last() + 1}%{-1}",
	}},
}

// method compiles a method call of n.
func (p *parser) method(n node) (node, error) {
	if err := p.next(); err != nil {
		return node{}, err
	}
	t := p.tok
	if t.kind != tokenName {
		return node{}, p.errorf(t.at, "%s does not belong here: want the name of a method", t.described())
	}
	var m *function
	for i := range methods[n.kind] {
		if methods[n.kind][i].name == t.text {
			m = &methods[n.kind][i]
		}
	}
	if m == nil {
		var known []string
		for _, m := range methods[n.kind] {
			known = append(known, m.name)
		}
		if known == nil {
			return node{}, p.errorf(t.at, "%v has no methods", n.kind)
		}
		return node{}, p.errorf(t.at, "%v has no method %s: want %s", n.kind, t.text, strings.Join(known, " or "))
	}
	if err := p.next(); err != nil {
		return node{}, err
	}
	args, err := p.arguments(t.text)
	if err != nil {
		return node{}, err
	}
	own := *m
	switch n.kind {
	case kindFormat:
		own.make = func(_ *builder, args []node) (node, error) {
			date := args[0]
			date.traits = date.with(n.traits)
			return date.formatted(n.format), nil
		}
	case kindSelf:
		if p.last == kindNone {
			return node{}, p.errorf(n.at, "this.last() needs an initial value that is a number, directly after the expression, such as %%{0}")
		}
		if p.selfAt < 0 {
			p.selfAt = n.at
		}
		own.make = p.lastNode
	}
	made, err := p.apply(n.at, &own, args)
	return made, err
}

// lastNode makes this.last().
func (p *parser) lastNode(*builder, []node) (node, error) {
	t := traits{varies: true, self: true}
	if p.last == kindReal {
		return realNode(t, func(c ctx) float64 { return math.Float64frombits(c.last) }), nil
	}
	n := integerNode(t, func(c ctx) int64 { return int64(c.last) })
	n.isLast = true
	return n, nil
}

// signature returns a call as documents show it.
func (f *function) signature() string {
	var b strings.Builder
	b.WriteString(f.name + "(")
	for i, p := range f.params {
		name := p.name
		if i > 0 {
			name = ", " + name
		}
		switch {
		case p.optional:
			fmt.Fprintf(&b, "[%s]", name)
		case f.rest && i == len(f.params)-1:
			b.WriteString(name + "...")
		default:
			b.WriteString(name)
		}
	}
	b.WriteString(")")
	return b.String()
}

// An ExpressionWord is one row of the table of the language.
type ExpressionWord struct {
	Form   string // as it is written: math:random(n)
	Result string // the type
	Help   string // one line, lower case, no full stop
}

// ExpressionFunctions returns all functions, in the order of their names' groups.
func ExpressionFunctions() []ExpressionWord {
	var out []ExpressionWord
	for i := range functions {
		f := &functions[i]
		out = append(out, ExpressionWord{f.signature(), f.result, f.help})
	}
	return out
}

// ExpressionValues returns all values and methods.
func ExpressionValues() []ExpressionWord {
	var out []ExpressionWord
	for _, v := range expressionValues {
		if v.help != "" {
			out = append(out, ExpressionWord{v.name, v.result, v.help})
		}
	}
	out = append(out, ExpressionWord{"true, false", "true or false", "for conditions"})
	for _, of := range []struct {
		kind kind
		name string
	}{{kindRandom, "rnd"}, {kindSelf, "this"}, {kindFormat, "date:format(pattern)"}} {
		for i := range methods[of.kind] {
			m := &methods[of.kind][i]
			out = append(out, ExpressionWord{of.name + "." + m.signature(), m.result, m.help})
		}
	}
	return out
}

// ExpressionOperators returns all operators.
func ExpressionOperators() []ExpressionWord {
	return []ExpressionWord{
		{"+  -  *", "integer or real", "of integers an integer, which overflows without an error"},
		{"/  (div)", "real", "also of integers"},
		{"%  (mod)", "integer or real", "the remainder, with the sign of the first operand; of a division of integers by 0 it is 0"},
		{"==  !=  <  >  <=  >=  (eq ne lt gt le ge)", "true or false", "of two numbers, texts or dates"},
		{"&&  ||  !  (and or not)", "true or false", "of conditions"},
		{"condition ? value : value", "that of the values", "one of the values"},
	}
}
