package payload

// This file compiles texts with expressions, such as "user-${rnd.nextInt(100)}", and evaluates
// them for events by number.
//
// A text consists of literal characters and of expressions: ${...} is evaluated for each
// event, %{...} once, and #{...} at most once a second. Directly after #{...}, or ${...} with
// this.last(), %{...} is an initial value: it is what this.last() returns at first, and for
// #{...} the value of the first second. A doubled sign is a literal one: $${ stands for ${.

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Bounds of a text, of the nesting in one expression, and of what a text may become. All
// are in bytes, except the depth.
const (
	maxText     = 4 << 10
	maxDepth    = 64
	maxTemplate = 64 << 10
)

// A TemplateUse says when a text is evaluated. It decides which expressions are possible.
type TemplateUse uint8

// The uses.
const (
	// Live texts are evaluated as their events are sent: they may use everything.
	Live TemplateUse = iota
	// Repeatable texts are evaluated whenever the text of an event is needed, and must be
	// the same each time: ${...} must not read the clock, and #{...} is not possible.
	Repeatable
	// Ahead texts are evaluated before the run, for events that repeat: in addition,
	// ${...} has no previous value.
	Ahead
)

// TemplateOptions are what the values of a text depend on, in addition to the events.
type TemplateOptions struct {
	Seed uint64 // of random values; different texts need different seeds
	Use  TemplateUse
	// Env looks up an environment variable; nil: os.LookupEnv. It is only called for
	// names that the text contains, and only by ParseTemplate.
	Env func(name string) (value string, ok bool)
}

// A TemplateError is a text that cannot be compiled, and where. It never contains the value of
// an environment variable.
type TemplateError struct {
	Column int // of the first byte that is wrong, from 1
	Why    string
}

// Error implements error.
func (e *TemplateError) Error() string { return fmt.Sprintf("at %d: %s", e.Column, e.Why) }

// A Template is a compiled text. It is safe for concurrent use.
type Template struct {
	segments []segment
	most     int
	clock    bool // some segment needs the time
	usesEnv  bool
}

// A segment is a part of a text that is evaluated in one piece.
type segment struct {
	literal string
	eval    func(c ctx, dst []byte) []byte // nil: the literal
	integer func(c ctx) int64              // of an integer, the value itself; else nil
}

// ctx is what an evaluation depends on. It is small and passed by value, so that it
// stays in registers.
type ctx struct {
	event uint64
	now   int64  // nanoseconds since 1970
	last  uint64 // bits of the previous value
}

// HasExpression reports whether a text contains ${, %{ or #{, escaped or not. Any other text is
// its own value.
func HasExpression(text string) bool {
	for i := 0; i+1 < len(text); i++ {
		if isSign(text[i]) && text[i+1] == '{' {
			return true
		}
	}
	return false
}

func isSign(c byte) bool { return c == '$' || c == '%' || c == '#' }

// StartsExpression reports whether text begins with an expression, and whether with an escaped
// one: a doubled sign and a brace.
func StartsExpression(text string) (expression, escaped bool) {
	switch {
	case len(text) < 2 || !isSign(text[0]):
	case text[1] == '{':
		return true, false
	case text[1] == text[0] && len(text) > 2 && text[2] == '{':
		return false, true
	}
	return false, false
}

// ExpressionLen returns the bytes of the expression that text begins with, its initial value
// included, and 0 if it has no end.
func ExpressionLen(text string) int {
	n := bodyLen(text)
	if n > 0 && text[0] != '%' && strings.HasPrefix(text[n:], "%{") {
		if init := bodyLen(text[n:]); init > 0 {
			return n + init
		}
		return 0
	}
	return n
}

// bodyLen is the length of one sign with its braces; 0: it has no closing brace.
// Braces in quotes are text.
func bodyLen(text string) int {
	quote := byte(0)
	for i := 2; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '}':
			return i + 1
		}
	}
	return 0
}

// CutText cuts text around the first sep that is outside of expressions, like strings.Cut.
func CutText(text string, sep byte) (before, after string, found bool) {
	for i := 0; i < len(text); i++ {
		begins, escaped := StartsExpression(text[i:])
		switch {
		case begins:
			n := ExpressionLen(text[i:])
			if n == 0 {
				return text, "", false
			}
			i += n - 1
		case escaped:
			i += 2
		case text[i] == sep:
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// ParseTemplate compiles a text. An error is an *TemplateError.
func ParseTemplate(text string, o TemplateOptions) (*Template, error) {
	if len(text) > maxText {
		return nil, &TemplateError{maxText + 1, fmt.Sprintf("a text with expressions has at most %d bytes, not %d", maxText, len(text))}
	}
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	t := &Template{}
	p := &parser{builder: builder{o: o}, src: text}
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			t.segments = append(t.segments, segment{literal: lit.String()})
			t.most += lit.Len()
			lit.Reset()
		}
	}
	for i := 0; i < len(text); i++ {
		begins, escaped := StartsExpression(text[i:])
		switch {
		case escaped:
			lit.WriteString(text[i+1 : i+3])
			i += 2
		case begins:
			n := ExpressionLen(text[i:])
			if n == 0 {
				open := i + bodyLen(text[i:]) // of the initial value, if the expression is closed
				return nil, &TemplateError{open + 1, fmt.Sprintf("it has no closing }; write %[1]c%[1]c{ for a literal %[1]c{", text[open])}
			}
			s, err := p.segment(i, i+n)
			if err != nil {
				return nil, err
			}
			if s.alone {
				n = bodyLen(text[i:])
			}
			t.clock = t.clock || s.clock
			t.usesEnv = t.usesEnv || s.env
			if s.eval == nil {
				lit.WriteString(s.literal)
			} else {
				flush()
				t.segments = append(t.segments, s.segment)
				t.most += s.most
			}
			i += n - 1
		default:
			lit.WriteByte(text[i])
		}
	}
	flush()
	if t.most > maxTemplate {
		return nil, &TemplateError{1, fmt.Sprintf("the text may become %d bytes long, and the limit is %d", t.most, maxTemplate)}
	}
	return t, nil
}

// Append appends the text of an event. Events are numbered from 0 over a whole run.
func (t *Template) Append(dst []byte, event uint64) []byte {
	c := ctx{event: event}
	if t.clock {
		c.now = time.Now().UnixNano()
	}
	for i := range t.segments {
		if s := &t.segments[i]; s.eval != nil {
			dst = s.eval(c, dst)
		} else {
			dst = append(dst, s.literal...)
		}
	}
	return dst
}

// IsInteger reports whether the text is a single expression that is an integer, evaluated for
// each event, or the same integer for all of them.
func (t *Template) IsInteger() bool {
	if len(t.segments) != 1 {
		return false
	}
	s := &t.segments[0]
	if s.eval == nil {
		_, err := strconv.ParseInt(s.literal, 10, 64)
		return err == nil
	}
	return s.integer != nil
}

// Integer returns the value of an event, if the text IsInteger, without making its text.
func (t *Template) Integer(event uint64) int64 {
	s := &t.segments[0]
	if s.eval == nil {
		n, _ := strconv.ParseInt(s.literal, 10, 64) // IsInteger has checked it
		return n
	}
	c := ctx{event: event}
	if t.clock {
		c.now = time.Now().UnixNano()
	}
	return s.integer(c)
}

// Constant reports whether the text is the same for all events, at any time.
func (t *Template) Constant() bool {
	for i := range t.segments {
		if t.segments[i].eval != nil {
			return false
		}
	}
	return true
}

// MaxLen returns the maximum bytes of a text.
func (t *Template) MaxLen() int { return t.most }

// Timed reports whether the text depends on the time, and not only on the event.
func (t *Template) Timed() bool { return t.clock }

// UsesEnv reports whether the text contains the value of an environment variable. What
// it becomes must not be shown then.
func (t *Template) UsesEnv() bool { return t.usesEnv }
