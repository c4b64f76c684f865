package payload

import (
	"bytes"
	"math"
	"sync"
)

// unary compiles - and !.
func (p *parser) unary(op token, n node) (node, error) {
	if op.text == "!" {
		if n.kind != kindBool {
			return node{}, p.errorf(n.at, "the operand of ! is %v: want a comparison", n.kind)
		}
		f := n.truth
		return boolNode(n.traits, func(c ctx) bool { return !f(c) }).placed(op.at), nil
	}
	n, ok := n.asNumber()
	if !ok {
		return node{}, p.errorf(n.at, "the operand of - is %v: want a number", n.kind)
	}
	if n.kind == kindInteger {
		f := n.integer
		return integerNode(n.traits, func(c ctx) int64 { return -f(c) }).placed(op.at), nil
	}
	f := n.real
	return realNode(n.traits, func(c ctx) float64 { return -f(c) }).placed(op.at), nil
}

// binary compiles an operator between two operands.
func (p *parser) binary(op token, left, right node) (n node, err error) {
	switch op.text {
	case "||", "&&":
		n, err = p.logical(op, left, right)
	case "+", "-", "*", "/", "%":
		n, err = p.arithmetic(op, left, right)
	default:
		n, err = p.comparison(op, left, right)
	}
	return n.placed(left.at), err
}

func (p *parser) logical(op token, left, right node) (node, error) {
	for _, n := range []node{left, right} {
		if n.kind != kindBool {
			return node{}, p.errorf(n.at, "an operand of %s is %v: want a comparison", op.text, n.kind)
		}
	}
	t, x, y := left.with(right.traits), left.truth, right.truth
	if op.text == "||" {
		return boolNode(t, func(c ctx) bool { return x(c) || y(c) }), nil
	}
	return boolNode(t, func(c ctx) bool { return x(c) && y(c) }), nil
}

// numbers returns both operands as numbers of one kind.
func (p *parser) numbers(op token, left, right node) (x, y node, err error) {
	for i, n := range []*node{&left, &right} {
		number, ok := n.asNumber()
		if !ok {
			hint := ""
			if n.kind == kindText && op.text == "+" {
				hint = "; texts are joined by string:join, or by writing expressions side by side"
			}
			return x, y, p.errorf(n.at, "the %s operand of %s is %v: want a number%s", [...]string{"first", "second"}[i], op.text, n.kind, hint)
		}
		*n = number
	}
	if left.kind != right.kind {
		left, right = left.asReal(), right.asReal()
	}
	return left, right, nil
}

// arithmetic compiles + - * / %. Integers overflow without an error; / is always real.
func (p *parser) arithmetic(op token, left, right node) (node, error) {
	left, right, err := p.numbers(op, left, right)
	if err != nil {
		return node{}, err
	}
	t := left.with(right.traits)
	if op.text == "/" {
		left, right = left.asReal(), right.asReal()
	}
	if left.kind == kindReal {
		x, y := left.real, right.real
		return realNode(t, map[string]func(c ctx) float64{
			"+": func(c ctx) float64 { return x(c) + y(c) },
			"-": func(c ctx) float64 { return x(c) - y(c) },
			"*": func(c ctx) float64 { return x(c) * y(c) },
			"/": func(c ctx) float64 { return x(c) / y(c) },
			"%": func(c ctx) float64 { return math.Mod(x(c), y(c)) },
		}[op.text]), nil
	}
	x, y := left.integer, right.integer
	if op.text == "%" && !right.varies && y(ctx{}) == 0 {
		return node{}, p.errorf(right.at, "the remainder of a division by 0 is not defined")
	}
	n := integerNode(t, map[string]func(c ctx) int64{
		"+": func(c ctx) int64 { return x(c) + y(c) },
		"-": func(c ctx) int64 { return x(c) - y(c) },
		"*": func(c ctx) int64 { return x(c) * y(c) },
		"%": func(c ctx) int64 {
			if y := y(c); y != 0 {
				return x(c) % y
			}
			return 0 // events cannot fail
		},
	}[op.text])
	switch {
	case op.text == "+" && left.isLast && !right.varies:
		n.step = new(y(ctx{}))
	case op.text == "+" && right.isLast && !left.varies:
		n.step = new(x(ctx{}))
	case op.text == "-" && left.isLast && !right.varies:
		n.step = new(-y(ctx{}))
	}
	return n, nil
}

// comparison compiles == != < > <= >=.
func (p *parser) comparison(op token, left, right node) (node, error) {
	equality := op.text == "==" || op.text == "!="
	t := left.with(right.traits)
	switch {
	case left.kind == kindText && right.kind == kindText:
		return boolNode(t, compared(op.text, textOrder(left.text, right.text))), nil
	case left.kind == kindBool && right.kind == kindBool && equality:
		x, y, want := left.truth, right.truth, op.text == "=="
		return boolNode(t, func(c ctx) bool { return (x(c) == y(c)) == want }), nil
	case left.kind == kindDate && right.kind == kindDate:
		return boolNode(t, numbersCompared(op.text, left.integer, right.integer)), nil
	}
	left, right, err := p.numbers(op, left, right)
	if err != nil {
		return node{}, err
	}
	if left.kind == kindInteger {
		return boolNode(t, numbersCompared(op.text, left.integer, right.integer)), nil
	}
	return boolNode(t, numbersCompared(op.text, left.real, right.real)), nil
}

func numbersCompared[T int64 | float64](op string, x, y func(c ctx) T) func(c ctx) bool {
	return map[string]func(c ctx) bool{
		"==": func(c ctx) bool { return x(c) == y(c) },
		"!=": func(c ctx) bool { return x(c) != y(c) },
		"<":  func(c ctx) bool { return x(c) < y(c) },
		">":  func(c ctx) bool { return x(c) > y(c) },
		"<=": func(c ctx) bool { return x(c) <= y(c) },
		">=": func(c ctx) bool { return x(c) >= y(c) },
	}[op]
}

// compared compares by an order: below 0, 0, or above 0.
func compared(op string, order func(c ctx) int64) func(c ctx) bool {
	return numbersCompared(op, order, constant(int64(0)))
}

// scratches hold two texts while they are compared.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

func textOrder(x, y func(c ctx, dst []byte) []byte) func(c ctx) int64 {
	return func(c ctx) int64 {
		scratch := scratches.Get().(*[]byte)
		b := x(c, (*scratch)[:0])
		n := len(b)
		b = y(c, b)
		order := bytes.Compare(b[:n], b[n:])
		*scratch = b
		scratches.Put(scratch)
		return int64(order)
	}
}

// choose compiles condition ? one : other. Both become real numbers if one is, and texts
// if one is.
func (p *parser) choose(op token, cond, one, other node) (node, error) {
	t := cond.with(one.with(other.traits))
	if one.kind != other.kind {
		switch {
		case one.kind == kindText || other.kind == kindText:
			var ok, ok2 bool
			one, ok = one.asText()
			other, ok2 = other.asText()
			if !ok || !ok2 {
				return node{}, p.errorf(op.at, "the results of ? are %v and %v: want two values", one.kind, other.kind)
			}
		case one.kind <= kindReal && other.kind <= kindReal:
			one, other = one.asReal(), other.asReal()
		default:
			return node{}, p.errorf(op.at, "the results of ? are %v and %v: want two values of one type", one.kind, other.kind)
		}
	}
	n := node{traits: t, kind: one.kind, at: cond.at}
	when := cond.truth
	switch one.kind {
	case kindInteger, kindDate:
		n.integer = choice(when, one.integer, other.integer)
	case kindReal:
		n.single = one.single && other.single
		n.real = choice(when, one.real, other.real)
	case kindBool:
		n.truth = choice(when, one.truth, other.truth)
	case kindText:
		x, y := one.text, other.text
		n.most = max(one.most, other.most)
		n.text = func(c ctx, dst []byte) []byte {
			if when(c) {
				return x(c, dst)
			}
			return y(c, dst)
		}
	default:
		return node{}, p.notValue(one, "the result of ?")
	}
	return n.folded(), nil
}

func choice[T any](when func(c ctx) bool, x, y func(c ctx) T) func(c ctx) T {
	return func(c ctx) T {
		if when(c) {
			return x(c)
		}
		return y(c)
	}
}
