package riemann

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"carronade/payload"
	"carronade/units"
)

// seqDigits is the width of {seq}: constant, so that one event's bytes can be
// overwritten with another's. Numbers are modulo ten billion.
const seqDigits = 10

// Kinds of the parts of a text.
type partKind uint8

const (
	partLiteral partKind = iota
	partNumber
	partChosen
	partCycled
	partSeq
	partClient
	partExpression
)

// A textPart is a piece of a text.
type textPart struct {
	kind       partKind
	text       string             // of a literal
	items      []string           // of chosen and cycled
	cumulative []uint64           // of a weighted choice: cumulative weights
	gen        *payload.Generator // of number and chosen

	expression *payload.Template
}

// A fieldText generates one text field of events.
type fieldText struct {
	typed string // as the user typed it
	parts []textPart
}

// An eventPlace says which event a text is for.
type eventPlace struct {
	stream  int32
	content uint64 // index of the content, which repeats with the pool
	seq     uint64 // index of the event
}

// draw is the number from which an event's random choices are derived. It
// differs between streams.
func (a eventPlace) draw() uint64 { return uint64(a.stream)<<40 + a.content }

// append appends the text of one event.
func (t *fieldText) append(dst []byte, a eventPlace) []byte {
	for i := range t.parts {
		p := &t.parts[i]
		switch p.kind {
		case partLiteral:
			dst = append(dst, p.text...)
		case partNumber:
			dst = p.gen.AppendKey(dst, a.draw())
		case partChosen:
			dst = append(dst, p.items[p.choose(a.draw())]...)
		case partCycled:
			dst = append(dst, p.items[a.content%uint64(len(p.items))]...)
		case partSeq:
			dst = append(dst, "0000000000"...)
			putDigits(dst[len(dst)-seqDigits:], a.seq)
		case partClient:
			dst = strconv.AppendInt(dst, int64(a.stream), 10)
		case partExpression:
			dst = p.expression.Append(dst, a.draw())
		}
	}
	return dst
}

func (p *textPart) choose(n uint64) int {
	u := p.gen.KeyNumber(n)
	if p.cumulative == nil {
		return int(u)
	}
	i := 0
	for u >= p.cumulative[i] {
		i++
	}
	return i
}

// putDigits writes the last ten digits of v.
func putDigits(b []byte, v uint64) {
	_ = b[seqDigits-1]
	// Two halves of five digits, whose divisions do not depend on each other, so
	// that the processor can overlap them.
	hi, lo := uint32(v/1e5%1e5), uint32(v%1e5)
	for i := 4; i >= 0; i-- {
		b[i], b[i+5] = byte('0'+hi%10), byte('0'+lo%10)
		hi, lo = hi/10, lo/10
	}
}

// A formError is a text that could not be read, and where.
type formError struct {
	column int // of the first byte that is wrong, from 1
	why    error
}

func (e *formError) Error() string { return fmt.Sprintf("at %d: %v", e.column, e.why) }

// parseText reads a text with placeholders. seed makes its random choices
// independent of those of other fields.
func parseText(typed string, seed uint64) (*fieldText, error) {
	t := &fieldText{typed: typed}
	if typed == valueNone || typed == "" {
		return t, nil
	}
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			t.parts = append(t.parts, textPart{text: lit.String()})
			lit.Reset()
		}
	}
	for i := 0; i < len(typed); i++ {
		c := typed[i]
		begins, escaped := payload.StartsExpression(typed[i:])
		switch {
		case begins:
			flush()
			p, n, err := parseExpression(typed, i, mix(seed, uint64(len(t.parts))))
			if err != nil {
				return nil, err
			}
			t.parts = append(t.parts, p)
			i += n - 1
		case escaped: // the sign is literal, and the brace is what it would be without it
			lit.WriteByte(c)
			i++
		case c == '{' && strings.HasPrefix(typed[i+1:], "{"), c == '}' && strings.HasPrefix(typed[i+1:], "}"):
			lit.WriteByte(c)
			i++
		case c == '}':
			return nil, &formError{i + 1, errors.New("a } has no {; write }} for a literal brace")}
		case c == '{':
			n := strings.IndexByte(typed[i:], '}')
			if n < 0 {
				return nil, &formError{i + 1, errors.New("it has no closing }; write {{ for a literal brace")}
			}
			flush()
			p, err := parsePart(typed[i+1:i+n], mix(seed, uint64(len(t.parts))))
			if err != nil {
				return nil, &formError{i + 1, err}
			}
			t.parts = append(t.parts, p)
			i += n
		default:
			lit.WriteByte(c)
		}
	}
	flush()
	return t, nil
}

// parseExpression reads the expression at an offset of a text, and returns its length. It
// is evaluated for the events of the pool, and repeats with them.
func parseExpression(typed string, at int, seed uint64) (p textPart, n int, err error) {
	if n = payload.ExpressionLen(typed[at:]); n == 0 {
		n = len(typed) - at // without an end, which is the error
	}
	t, err := payload.ParseTemplate(typed[at:at+n], payload.TemplateOptions{Seed: seed, Use: payload.Ahead})
	var wrong *payload.TemplateError
	if errors.As(err, &wrong) {
		return p, 0, &formError{at + wrong.Column, errors.New(wrong.Why)}
	}
	return textPart{kind: partExpression, expression: t}, n, err
}

// parsePart reads the text between braces.
func parsePart(s string, seed uint64) (textPart, error) {
	name, args, called, err := callForm(s)
	if err != nil {
		return textPart{}, err
	}
	switch name {
	case "seq", "client", "service":
		if called {
			return textPart{}, fmt.Errorf("{%s} takes nothing in parentheses", name)
		}
		switch name {
		case "seq":
			return textPart{kind: partSeq}, nil
		case "client":
			return textPart{kind: partClient}, nil
		}
		return textPart{kind: partChosen, items: usualServices, gen: choiceOf(uint64(len(usualServices)), seed)}, nil
	case "uniform", "zipf":
		gen, err := numbersUpTo(name, args, seed)
		return textPart{kind: partNumber, gen: gen}, err
	case "pick", "cycle":
		if len(args) == 0 {
			return textPart{}, fmt.Errorf("%s needs at least one value", name)
		}
		p := textPart{kind: partCycled, items: args}
		if name == "pick" {
			p.kind, p.gen = partChosen, choiceOf(uint64(len(args)), seed)
		}
		return p, nil
	case "weighted":
		return weightedChoice(args, seed)
	}
	return textPart{}, fmt.Errorf("unknown placeholder {%s}", s)
}

// weightedChoice reads items of the form TEXT:WEIGHT.
func weightedChoice(args []string, seed uint64) (textPart, error) {
	p := textPart{kind: partChosen}
	var sum uint64
	for _, a := range args {
		i := strings.LastIndexByte(a, ':')
		if i < 0 {
			return p, fmt.Errorf("%q has no weight: want TEXT:WEIGHT, such as ok:97", a)
		}
		w, err := units.ParseCount(a[i+1:])
		if err != nil || w > 1e12 {
			return p, fmt.Errorf("%q is not a weight: want a whole number such as 97", a[i+1:])
		}
		sum += w
		p.items, p.cumulative = append(p.items, a[:i]), append(p.cumulative, sum)
	}
	if sum == 0 {
		return p, errors.New("weighted needs at least one value")
	}
	p.gen = choiceOf(sum, seed)
	return p, nil
}

// callForm splits "name(a,b)" into its parts; called reports whether there were
// parentheses.
func callForm(s string) (name string, args []string, called bool, err error) {
	name, rest, called := strings.Cut(strings.TrimSpace(s), "(")
	if !called {
		return name, nil, false, nil
	}
	inner, ok := strings.CutSuffix(rest, ")")
	if !ok {
		return name, nil, true, errors.New("it has no closing )")
	}
	if strings.TrimSpace(inner) != "" {
		args = strings.Split(inner, ",")
		for i := range args {
			args[i] = strings.TrimSpace(args[i])
		}
	}
	return strings.TrimSpace(name), args, true, nil
}

// maxNumbers bounds uniform and zipf: float64 represents every whole number up to
// it.
const maxNumbers = 1 << 53

// numbersUpTo makes uniform(N) and zipf(N,EXPONENT), the key distributions of
// package payload.
func numbersUpTo(name string, args []string, seed uint64) (*payload.Generator, error) {
	switch {
	case name == "uniform" && len(args) != 1:
		return nil, errors.New("uniform takes a count, such as uniform(20)")
	case name == "zipf" && len(args) != 2:
		return nil, errors.New("zipf takes a count and an exponent, such as zipf(1000,1.1)")
	}
	n, err := units.ParseCount(args[0])
	if err != nil || n == 0 || n > maxNumbers {
		return nil, fmt.Errorf("%q is not a number from 1 to 2^53", args[0])
	}
	form := fmt.Sprintf("uniform(%d)", n)
	if name == "zipf" {
		s, err := strconv.ParseFloat(args[1], 64)
		if err != nil || !(s > 0) || s > 10 || math.IsInf(s, 0) {
			return nil, fmt.Errorf("%q is not an exponent above 0 and up to 10", args[1])
		}
		form = fmt.Sprintf("zipf(%d,%s)", n, args[1])
	}
	return payload.New(payload.Spec{Seed: seed, Key: form})
}

// choiceOf makes a generator that draws uniformly from 0 to n-1.
func choiceOf(n, seed uint64) *payload.Generator {
	g, err := payload.New(payload.Spec{Seed: seed, Key: fmt.Sprintf("uniform(%d)", n)})
	if err != nil {
		panic(err) // n is from 1 to 2^53
	}
	return g
}

// usualServices are common service names of riemann-tools and monitoring agents.
var usualServices = []string{
	"cpu", "cpu user", "cpu system", "cpu iowait", "cpu steal",
	"load", "load 1m", "load 5m", "load 15m", "uptime",
	"memory", "memory cached", "memory buffers", "swap", "swap in",
	"swap out", "disk /", "disk /boot", "disk /var", "disk /var/lib/postgresql",
	"diskstats sda reads reqs", "diskstats sda writes reqs", "diskstats sda io time", "diskstats nvme0n1 reads reqs", "diskstats nvme0n1 writes reqs",
	"eth0 rx bytes", "eth0 rx packets", "eth0 rx drop", "eth0 tx bytes", "eth0 tx packets",
	"net connections", "net retransmits", "fd open", "processes", "threads",
	"nginx active", "nginx req rate", "nginx req time p50", "nginx req time p99", "nginx 5xx rate",
	"api login rate", "api login time p99", "api checkout rate", "api checkout time p99", "api search time p99",
	"postgres connections", "postgres replication lag", "redis memory", "jvm heap used", "jvm gc time",
}
