package payload

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A parser compiles the expressions of a text, by precedence climbing. It makes typed
// functions while it reads, without a tree.
type parser struct {
	builder
	src      string
	pos, end int
	tok      token
	depth    int

	last    kind // the type of this.last(); kindNone: no initial value
	clockAt int  // where the clock was read first; -1: nowhere
	selfAt  int  // likewise this.last()
}

func (p *parser) errorf(at int, format string, args ...any) error {
	return &TemplateError{at + 1, fmt.Sprintf(format, args...)}
}

// expression compiles the expression between two offsets of the text.
func (p *parser) expression(from, to int, last kind) (node, error) {
	p.pos, p.end, p.depth, p.last, p.clockAt, p.selfAt = from, to, 0, last, -1, -1
	if err := p.next(); err != nil {
		return node{}, err
	}
	if p.tok.kind == tokenEnd {
		return node{}, p.errorf(from, "the expression is empty")
	}
	n, err := p.operand(0)
	if err != nil {
		return node{}, err
	}
	if p.tok.kind != tokenEnd {
		return node{}, p.errorf(p.tok.at, "%s does not belong here: want an operator, or }", p.tok.described())
	}
	return n, nil
}

// precedences of the operators between two operands; those of one level are computed from
// left to right.
var precedences = map[string]int{
	"||": 2, "&&": 3, "==": 4, "!=": 4, "<": 5, ">": 5, "<=": 5, ">=": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7,
}

const precedenceOfTernary = 1

// operand compiles an expression whose operators bind more than least.
func (p *parser) operand(least int) (node, error) {
	if p.depth++; p.depth > maxDepth {
		return node{}, p.errorf(p.tok.at, "the expression is nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	left, err := p.prefix()
	if err != nil {
		return node{}, err
	}
	for p.tok.kind == tokenOperator {
		op := p.tok
		if op.text == "?" && least < precedenceOfTernary {
			if left, err = p.ternary(left); err != nil {
				return node{}, err
			}
			continue
		}
		precedence := precedences[op.text]
		if precedence == 0 || precedence <= least {
			break
		}
		if err := p.next(); err != nil {
			return node{}, err
		}
		right, err := p.operand(precedence)
		if err != nil {
			return node{}, err
		}
		if left, err = p.binary(op, left, right); err != nil {
			return node{}, err
		}
	}
	return left, nil
}

// ternary compiles the rest of a condition ? one : other.
func (p *parser) ternary(cond node) (node, error) {
	op := p.tok
	if cond.kind != kindBool {
		return node{}, p.errorf(cond.at, "the condition of ? is %v: want a comparison", cond.kind)
	}
	if err := p.next(); err != nil {
		return node{}, err
	}
	one, err := p.operand(0)
	if err != nil {
		return node{}, err
	}
	if err := p.expect(":"); err != nil {
		return node{}, err
	}
	other, err := p.operand(0)
	if err != nil {
		return node{}, err
	}
	return p.choose(op, cond, one, other)
}

// prefix compiles an operand with its signs and method calls.
func (p *parser) prefix() (node, error) {
	t := p.tok
	if t.kind == tokenOperator && (t.text == "-" || t.text == "!") {
		if p.depth++; p.depth > maxDepth {
			return node{}, p.errorf(t.at, "the expression is nested more than %d deep", maxDepth)
		}
		defer func() { p.depth-- }()
		if err := p.next(); err != nil {
			return node{}, err
		}
		n, err := p.prefix()
		if err != nil {
			return node{}, err
		}
		return p.unary(t, n)
	}
	n, err := p.primary()
	if err != nil {
		return node{}, err
	}
	for p.tok.kind == tokenOperator && p.tok.text == "." {
		if n, err = p.method(n); err != nil {
			return node{}, err
		}
	}
	return n, nil
}

// primary compiles a value, a call, or an expression in parentheses.
func (p *parser) primary() (node, error) {
	t := p.tok
	switch {
	case t.kind == tokenFunction:
		return p.call(t)
	case t.kind == tokenOperator && t.text == "(":
		if err := p.next(); err != nil {
			return node{}, err
		}
		n, err := p.operand(0)
		if err != nil {
			return node{}, err
		}
		return n.placed(t.at), p.expect(")")
	}
	var n node
	switch t.kind {
	case tokenNumber:
		if v, err := strconv.ParseInt(t.text, 10, 64); err == nil {
			n = integerOf(v)
		} else {
			f, err := strconv.ParseFloat(t.text, 64)
			if err != nil || !strings.ContainsAny(t.text, ".eE") {
				return node{}, p.errorf(t.at, "the number %s is too large", t.text)
			}
			n = realOf(f)
		}
	case tokenText:
		n = textOf(t.text)
	case tokenName:
		v := valueNamed(t.text)
		if v == nil {
			return node{}, p.errorf(t.at, "%s is not known: want a value (%s), a function, such as time:nanos(), or a text in quotes; %s",
				t.text, valueNames(), p.literally())
		}
		n = v.node()
	default:
		return node{}, p.errorf(t.at, "%s does not belong here: want a value", t.described())
	}
	return n.placed(t.at), p.next()
}

// literally says how to write the sign of the expression itself.
func (p *parser) literally() string {
	i := p.end
	for i > 0 && (p.src[i-1] != '{' || i < 2 || !isSign(p.src[i-2])) {
		i--
	}
	if i < 2 {
		return "a doubled sign is a literal one"
	}
	return fmt.Sprintf("a literal %s is written %c%s", p.src[i-2:i], p.src[i-2], p.src[i-2:i])
}

// expect reads an operator that must come now.
func (p *parser) expect(op string) error {
	if p.tok.kind != tokenOperator || p.tok.text != op {
		return p.errorf(p.tok.at, "%s does not belong here: want %s", p.tok.described(), op)
	}
	return p.next()
}

// arguments reads the arguments of a call, from its opening parenthesis on.
func (p *parser) arguments(name string) (args []node, err error) {
	if p.tok.kind != tokenOperator || p.tok.text != "(" {
		return nil, p.errorf(p.tok.at, "want ( after %s", name)
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	if p.tok.kind == tokenOperator && p.tok.text == ")" {
		return nil, p.next()
	}
	for {
		n, err := p.operand(0)
		if err != nil {
			return nil, err
		}
		args = append(args, n)
		if p.tok.kind != tokenOperator || p.tok.text != "," {
			break
		}
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	if p.tok.kind != tokenOperator || p.tok.text != ")" {
		return nil, p.errorf(p.tok.at, "%s does not belong here: want , or ) in the arguments of %s", p.tok.described(), name)
	}
	return args, p.next()
}

// call compiles the call of a function.
func (p *parser) call(t token) (node, error) {
	f := functionNamed(t.text)
	if f == nil {
		before, _, _ := strings.Cut(t.text, ":")
		var known []string
		for i := range functions {
			if strings.HasPrefix(functions[i].name, before+":") {
				known = append(known, functions[i].name)
			}
		}
		return node{}, p.errorf(t.at, "function %s does not exist: want one of %s", t.text, strings.Join(known, ", "))
	}
	if err := p.next(); err != nil {
		return node{}, err
	}
	args, err := p.arguments(t.text)
	if err != nil {
		return node{}, err
	}
	n, err := p.apply(t.at, f, args)
	if err == nil && n.clock && p.clockAt < 0 {
		p.clockAt = t.at
	}
	return n, err
}

// apply converts the arguments of a function to its parameters, and makes its node.
func (p *parser) apply(at int, f *function, args []node) (node, error) {
	least := len(f.params)
	for least > 0 && f.params[least-1].optional || f.rest && least == len(f.params) {
		least--
	}
	if len(args) < least || !f.rest && len(args) > len(f.params) {
		return node{}, p.errorf(at, "%s has %d arguments: want %s", f.name, len(args), f.signature())
	}
	for i := range args {
		param := f.params[min(i, len(f.params)-1)]
		converted, err := p.convert(args[i], param.kind, func() string { return fmt.Sprintf("the argument %s of %s", param.name, f.name) })
		if err != nil {
			return node{}, err
		}
		args[i] = converted
	}
	n, err := f.make(&p.builder, args)
	return n.placed(at), err
}

// convert converts a value to a kind; what names its place, for an error.
func (p *parser) convert(n node, to kind, what func() string) (node, error) {
	switch {
	case to == kindNone:
		if n.kind >= kindFormat {
			return n, p.notValue(n, what())
		}
		return n, nil
	case to == kindText:
		if t, ok := n.asText(); ok {
			return t, nil
		}
		return n, p.notValue(n, what())
	case to == kindInteger || to == kindReal:
		number, ok := n.asNumber()
		if !ok {
			return n, p.errorf(n.at, "%s is %v: want a number", what(), n.kind)
		}
		if to == kindInteger {
			return number.asInteger(), nil
		}
		return number.asReal(), nil
	case n.kind != to:
		return n, p.errorf(n.at, "%s is %v: want %v", what(), n.kind, to)
	}
	return n, nil
}

// asNumber returns a number. Constant texts that are numbers are numbers, as in Java's
// expressions: those of the environment are texts.
func (n node) asNumber() (_ node, ok bool) {
	if n.kind == kindText && !n.varies {
		s := strings.TrimSpace(n.known)
		var number node
		if v, err := strconv.ParseInt(s, 10, 64); err == nil {
			number = integerOf(v)
		} else if v, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(v, 0) {
			number = realOf(v)
		} else {
			return n, false
		}
		number.traits = n.traits
		return number.placed(n.at), true
	}
	return n, n.kind == kindInteger || n.kind == kindReal
}

// notValue is the error of an expression that is not a value, with a hint how to get one from it.
func (p *parser) notValue(n node, what string) error {
	hint := map[kind]string{
		kindFormat: "; add .format(DATE), such as .format(date:from(0))",
		kindRandom: "; add .nextInt(N) or .nextLong(N)",
		kindSelf:   "; add .last()",
	}[n.kind]
	return p.errorf(n.at, "%s is %v, which is not a value%s", what, n.kind, hint)
}
