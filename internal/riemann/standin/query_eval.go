package standin

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"carronade/internal/riemann/wire"
)

// A subject is an event on which a query is evaluated. Host and service are set;
// the rest is decoded when the query needs it.
type subject struct {
	host, service string
	raw           string
	event         *wire.Event // nil: not decoded yet
}

func (s *subject) read() *wire.Event {
	if s.event == nil {
		e, err := wire.DecodeEvent([]byte(s.raw))
		if err != nil {
			// Impossible: this package encoded the event.
			e = wire.Event{}
		}
		s.event = &e
	}
	return s.event
}

// Kinds of values.
type valueKind uint8

const (
	isNil valueKind = iota
	isBool
	isWhole
	isReal
	isString
	isList
)

// A value is the value of a field or a literal. Any two numbers can be ordered;
// they are equal only if they are of one kind, as in Clojure, where (= 1 1.0) is
// false.
type value struct {
	kind  valueKind
	whole int64 // of a bool: 1 for true
	real  float64
	text  string
}

func (v value) truth() bool { return v.kind != isNil && (v.kind != isBool || v.whole != 0) }

func truth(b bool) value {
	if b {
		return value{kind: isBool, whole: 1}
	}
	return value{kind: isBool}
}

func textValue(s string) value {
	if s == "" {
		return value{} // empty means absent, as in the wire format's reader
	}
	return value{kind: isString, text: s}
}

// A node is a part of a query.
type node interface{ eval(s *subject) value }

type literal struct{ v value }

func (n literal) eval(*subject) value { return n.v }

type fieldNode struct {
	name string
	get  func(s *subject) value
}

func (n fieldNode) eval(s *subject) value { return n.get(s) }

// servicePrefix is a prefix that the services of all matching events have; empty if
// the query implies none.
func servicePrefix(n node) (prefix string) {
	switch n := n.(type) {
	case andNode:
		for _, part := range n {
			if p := servicePrefix(part); len(p) > len(prefix) {
				prefix = p
			}
		}
	case likeNode:
		if isService(n.a) {
			prefix = n.parts[0]
		}
	case equalNode:
		if l, ok := n.b.(literal); ok && isService(n.a) && l.v.kind == isString {
			prefix = l.v.text
		}
	}
	return prefix
}

func isService(n node) bool {
	f, ok := n.(fieldNode)
	return ok && f.name == "service"
}

func newField(name string) node { return fieldNode{name, field(name)} }

// field finds a field by its name; all other names are attributes, metric_f and metric_sint64 too: an event
// in the index of a server has only a metric.
func field(name string) func(s *subject) value {
	switch name {
	case "host":
		return func(s *subject) value { return textValue(s.host) }
	case "service":
		return func(s *subject) value { return textValue(s.service) }
	case "state":
		return func(s *subject) value { return textValue(s.read().State) }
	case "description":
		return func(s *subject) value { return textValue(s.read().Description) }
	case "metric":
		return func(s *subject) value { return metricValue(s.read().Metric) }
	case "ttl":
		return func(s *subject) value {
			e := s.read()
			if !e.HasTTL {
				return value{}
			}
			return value{kind: isReal, real: float64(e.TTL)}
		}
	case "time":
		return func(s *subject) value { return timeValue(s.read()) }
	case "tags":
		return func(s *subject) value {
			if len(s.read().Tags) == 0 {
				return value{}
			}
			return value{kind: isList}
		}
	}
	return func(s *subject) value {
		attributes := s.read().Attributes
		for i := len(attributes) - 1; i >= 0; i-- { // the last one of a name counts
			if attributes[i].Key == name {
				return value{kind: isString, text: attributes[i].Value}
			}
		}
		return value{}
	}
}

func metricValue(m wire.Metric) value {
	switch m.Kind {
	case wire.NoMetric:
		return value{}
	case wire.Sint64:
		return value{kind: isWhole, whole: m.Int}
	default:
		return value{kind: isReal, real: m.Real}
	}
}

// timeValue is the time in seconds: a whole number, or a real one with microseconds.
func timeValue(e *wire.Event) value {
	switch {
	case e.HasTimeMicros && e.TimeMicros%1e6 != 0:
		return value{kind: isReal, real: float64(e.TimeMicros) / 1e6}
	case e.HasTimeMicros:
		return value{kind: isWhole, whole: e.TimeMicros / 1e6}
	case e.HasTime:
		return value{kind: isWhole, whole: e.Time}
	}
	return value{}
}

type notNode struct{ n node }

func (n notNode) eval(s *subject) value { return truth(!n.n.eval(s).truth()) }

type andNode []node

func (n andNode) eval(s *subject) value {
	for _, n := range n {
		if !n.eval(s).truth() {
			return value{kind: isBool}
		}
	}
	return truth(true)
}

type orNode []node

func (n orNode) eval(s *subject) value {
	for _, n := range n {
		if n.eval(s).truth() {
			return truth(true)
		}
	}
	return value{kind: isBool}
}

type equalNode struct{ a, b node }

func (n equalNode) eval(s *subject) value {
	a, b := n.a.eval(s), n.b.eval(s)
	return truth(a == b && a.kind != isList)
}

type orderNode struct {
	op string
	a  node
	b  value
}

func (n orderNode) eval(s *subject) value {
	a := n.a.eval(s)
	var less, more bool
	switch {
	case a.kind != isWhole && a.kind != isReal:
		return value{kind: isBool}
	case a.kind == isWhole && n.b.kind == isWhole:
		less, more = a.whole < n.b.whole, a.whole > n.b.whole
	default:
		x, y := a.number(), n.b.number()
		less, more = x < y, x > y
		if x != x || y != y { // NaN is neither
			return value{kind: isBool}
		}
	}
	switch n.op {
	case "<":
		return truth(less)
	case ">":
		return truth(more)
	case "<=":
		return truth(!more)
	default:
		return truth(!less)
	}
}

func (v value) number() float64 {
	if v.kind == isWhole {
		return float64(v.whole)
	}
	return v.real
}

// A likeNode matches an entire string against a pattern in which % means any text.
type likeNode struct {
	a     node
	parts []string // between the % signs
}

func newLike(a node, pattern string) node { return likeNode{a, strings.Split(pattern, "%")} }

func (n likeNode) eval(s *subject) value {
	v := n.a.eval(s)
	return truth(v.kind == isString && like(v.text, n.parts))
}

func like(text string, parts []string) bool {
	first, rest := parts[0], parts[1:]
	text, ok := strings.CutPrefix(text, first)
	if len(rest) == 0 || !ok {
		return ok && text == ""
	}
	last, middle := rest[len(rest)-1], rest[:len(rest)-1]
	for _, part := range middle {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return strings.HasSuffix(text, last)
}

type regexNode struct {
	a    node
	expr *regexp.Regexp
}

// newRegex compiles a regular expression. It refuses features of Java's that Go
// lacks, such as lookahead.
func newRegex(a node, text string) (node, error) {
	expr, err := regexp.Compile(text)
	if err != nil {
		return literal{}, fmt.Errorf("regular expression: %w", err)
	}
	return regexNode{a, expr}, nil
}

func (n regexNode) eval(s *subject) value {
	v := n.a.eval(s)
	return truth(v.kind == isString && n.expr.MatchString(v.text))
}

type taggedNode string

func (n taggedNode) eval(s *subject) value {
	return truth(slices.Contains(s.read().Tags, string(n)))
}
