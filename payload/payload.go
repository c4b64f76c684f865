// Package payload generates the bytes of events: values, keys and headers.
//
// The bytes of event n are a pure function of the specification, the seed and n. Two
// machines, a producer and the consumer that checks it, or a run and its repetition get
// the same bytes without communication, in any order and from any number of goroutines.
// The package does not depend on what the bytes are used for: it has no protocol,
// batch or partition.
//
// For lognormal sizes and zipf keys this applies only between machines of one
// architecture: the logarithm of another one may differ in its last bit, and so may,
// very rarely, an event.
//
// Keys, headers and other texts of events may be a [Template]: a text with expressions, such as
// "user-${rnd.nextInt(100)}". Its functions, values and types are those of the expressions of
// mongoose scenarios (Java's unified expression language); [ExpressionFunctions],
// [ExpressionValues] and [ExpressionOperators] list them. Every type is known when a text is
// compiled, so a wrong call is an error of [ParseTemplate] and not of an event. Random values
// depend on the seed, the number of the event and the place of the call in the text, and on
// nothing else. Only a template that asks for the time has other bytes when it is evaluated
// again: the time is the generator's clock, in UTC, and a [TemplateUse] excludes it where
// events must be the same each time.
//
// The text forms of sizes, keys and payloads are [SizeForms], [KeyForms] and
// [PayloadForms].
package payload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carronade/units"
)

// Salts that make the random streams of one seed independent: the size of an event is
// unrelated to its key or its bytes.
const (
	saltSize uint64 = iota + 1
	saltKey
	saltValue
	saltHeader
)

// A Spec describes events in the syntax of the flags. Empty texts take the defaults:
// 100 bytes, random, no key. Keys and headers may contain expressions (see package
// expression).
type Spec struct {
	Seed    uint64
	Size    string   // see SizeForms
	Payload string   // see PayloadForms
	Key     string   // see KeyForms
	Headers []string // each NAME=VALUE, split at the first = outside of expressions
	// Pooled says that headers are made before the run, for events that repeat: then they
	// must not depend on the time (see Ahead).
	Pooled bool
}

// A Generator generates events by number. It does not change after New, so all its
// methods are safe for concurrent use. Apart from New, they allocate only to extend the
// slice that they are given.
type Generator struct {
	sizes   sizes
	values  values
	keys    keys
	headers []Header     // nil if they are made
	made    []madeHeader // nil if they are the same for every event

	sizeSeed, keySeed, valueSeed uint64
}

// New parses the specification, and reads the payload file if it names one. An error
// lists the valid forms; SettingOf says which text it is about.
func New(s Spec) (*Generator, error) {
	g := &Generator{
		sizeSeed:  mix(s.Seed, saltSize),
		keySeed:   mix(s.Seed, saltKey),
		valueSeed: mix(s.Seed, saltValue),
	}
	var err error
	if g.sizes, err = parseSizes(orDefault(s.Size, "100")); err != nil {
		return nil, &settingError{"size", err}
	}
	if g.values, err = parseValues(orDefault(s.Payload, "random"), g.valueSeed); err != nil {
		return nil, &settingError{"payload", err}
	}
	if g.keys, err = parseKeys(orDefault(s.Key, "none"), g.keySeed); err != nil {
		return nil, &settingError{"key", err}
	}
	if err := g.parseHeaders(s); err != nil {
		return nil, &settingError{"header", err}
	}
	return g, nil
}

func orDefault(s, otherwise string) string {
	if s = strings.TrimSpace(s); s == "" {
		return otherwise
	}
	return s
}

// Size returns the bytes of the value of event n, counted from 0.
func (g *Generator) Size(n uint64) int {
	switch g.values.kind {
	case monotonic:
		return digits(n)
	case lines:
		return len(g.values.file.line(g.valueSeed, n))
	}
	return g.sizes.size(g.sizeSeed, n)
}

// MeanSize returns the expected size of a value: the mean of the distribution, not of
// the events generated so far. Monotonic payloads have no such mean; it returns that of
// the first ten million events.
func (g *Generator) MeanSize() float64 {
	switch g.values.kind {
	case monotonic:
		return 6.888889
	case lines:
		return g.values.file.mean
	}
	return g.sizes.mean
}

// MaxSize returns the maximum size of a value.
func (g *Generator) MaxSize() int {
	switch g.values.kind {
	case monotonic:
		return 20
	case lines:
		return g.values.file.max
	}
	return g.sizes.max
}

// AppendValue appends the value of event n, which has Size(n) bytes.
func (g *Generator) AppendValue(dst []byte, n uint64) []byte {
	switch g.values.kind {
	case monotonic:
		return appendDecimal(dst, n, 1)
	case lines:
		return append(dst, g.values.file.line(g.valueSeed, n)...)
	}
	size, at := g.sizes.size(g.sizeSeed, n), len(dst)
	if g.values.kind == ringed {
		return g.values.ring.append(dst, g.values.offset(g.valueSeed, n), size)
	}
	dst = slices.Grow(dst, size)[:at+size]
	b := dst[at:]
	switch g.values.kind {
	case random:
		fillRandom(b, mix(g.valueSeed, n))
	case text:
		fillText(b, mix(g.valueSeed, n))
	case letters:
		if g.values.distinct > 0 {
			n %= g.values.distinct
		}
		fillLetters(b, mix(g.valueSeed, n))
	case chars:
		fillChars(b, mix(g.valueSeed, n), g.values.set)
	case compressible:
		fillCompressible(b, mix(g.valueSeed, n), g.values.ratio)
	default:
		clear(b)
	}
	return dst
}

// FileValues returns the number of values in the payload file, 0 without one.
func (g *Generator) FileValues() int {
	if g.values.file == nil {
		return 0
	}
	return g.values.file.count()
}

// HasKey reports whether events have keys.
func (g *Generator) HasKey() bool { return g.keys.kind != none }

// KeyUsesEnv reports whether keys contain the value of an environment variable. They must not be
// shown then.
func (g *Generator) KeyUsesEnv() bool {
	return g.keys.kind == expressed && g.keys.template.UsesEnv() || g.keys.kind == numbered && g.keys.usesEnv()
}

// KeyNumber returns the number of the key of event n: n itself for seq, else 0 to N-1,
// where 0 is the most frequent of a zipf distribution. It returns 0 without keys, and n
// for keys that are expressions.
func (g *Generator) KeyNumber(n uint64) uint64 { return g.keys.number(g.keySeed, n) }

// AppendKey appends the key of event n: its number in decimal digits (names: in digits
// of their radix), with leading zeros to the width of the largest (12 digits for seq),
// so that keys sort like their numbers and one can be replaced by another. A key that is
// an expression is its value for event n. Without keys it appends nothing.
func (g *Generator) AppendKey(dst []byte, n uint64) []byte {
	switch g.keys.kind {
	case none:
		return dst
	case expressed:
		return g.keys.template.Append(dst, n)
	case numbered:
		return strconv.AppendInt(g.keys.prefix.Append(dst, n), g.keys.template.Integer(n), g.keys.radix)
	}
	if g.keys.radix > 0 {
		return appendName(dst, g.keys.number(g.keySeed, n), g.keys.width, uint64(g.keys.radix))
	}
	return appendDecimal(dst, g.keys.number(g.keySeed, n), g.keys.width)
}

// MaxKeySize returns the maximum size of a key, 0 without keys.
func (g *Generator) MaxKeySize() int {
	if g.keys.kind == seq {
		return 20
	}
	return g.keys.width
}

// Describe returns a one-line description of the events, for a report.
func (g *Generator) Describe() string {
	var b strings.Builder
	b.WriteString(g.values.describe())
	if !g.values.sized() {
		fmt.Fprintf(&b, ", %s at most", units.FormatSize(int64(g.MaxSize())))
	} else {
		b.WriteString(", " + g.sizes.describe())
	}
	if g.HasKey() {
		b.WriteString("; key " + g.keys.describe())
	} else {
		b.WriteString("; no key")
	}
	b.WriteString(g.describeHeaders())
	return b.String()
}
