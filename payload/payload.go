// Package payload makes the bytes of events: values, keys and headers.
//
// It answers for one thing: the bytes of event n are a pure function of the
// specification, the seed and n. Two machines, a producer and the consumer that
// checks it, or a run and its repetition get the same bytes without telling each
// other, in any order and from any number of goroutines. It refuses to know
// where the bytes go: no protocol, batch, partition or clock is seen here.
//
// Of lognormal sizes and zipf keys this holds on machines of one architecture:
// another's logarithm may differ in its last bit, and so, hardly ever, may an event.
//
// The text forms of sizes, keys and payloads, as people type them, are those of
// [SizeForms], [KeyForms] and [PayloadForms].
package payload

import (
	"fmt"
	"slices"
	"strings"

	"carronade/units"
)

// Names of the salts that keep the streams of one seed apart: an event's size
// says nothing about its key or its bytes.
const (
	saltSize uint64 = iota + 1
	saltKey
	saltValue
)

// A Spec says, in the words of the flags, what events are made of. Empty texts
// take the defaults: 100 bytes, random, no key.
type Spec struct {
	Seed    uint64
	Size    string   // see SizeForms
	Payload string   // see PayloadForms
	Key     string   // see KeyForms
	Headers []string // each NAME=VALUE, split at the first =; the same on every event
}

// A Header is one header of every event. Its Value must not be modified.
type Header struct {
	Key   string
	Value []byte
}

// A Generator makes events by number. It does not change after New, so all its
// methods are safe for concurrent use, and none but New allocates beyond growing
// the slice that it was given.
type Generator struct {
	sizes   sizes
	values  values
	keys    keys
	headers []Header

	sizeSeed, keySeed, valueSeed uint64
}

// New reads the specification, and the payload file where it names one. An error
// lists the forms that would have been understood.
func New(s Spec) (*Generator, error) {
	g := &Generator{
		sizeSeed:  mix(s.Seed, saltSize),
		keySeed:   mix(s.Seed, saltKey),
		valueSeed: mix(s.Seed, saltValue),
	}
	var err error
	if g.sizes, err = parseSizes(or(s.Size, "100")); err != nil {
		return nil, err
	}
	if g.values, err = parseValues(or(s.Payload, "random")); err != nil {
		return nil, err
	}
	if g.keys, err = parseKeys(or(s.Key, "none")); err != nil {
		return nil, err
	}
	for _, h := range s.Headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("header %q has no name and value: want NAME=VALUE, such as source=carronade", h)
		}
		g.headers = append(g.headers, Header{Key: name, Value: []byte(value)})
	}
	return g, nil
}

func or(s, otherwise string) string {
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

// MeanSize returns the bytes of a value in the long run: the mean of the
// distribution, not of events made so far. Monotonic payloads have no such mean;
// theirs is taken as of the first ten million events.
func (g *Generator) MeanSize() float64 {
	switch g.values.kind {
	case monotonic:
		return 6.888889
	case lines:
		return g.values.file.mean
	}
	return g.sizes.mean
}

// MaxSize returns the bytes that no value exceeds.
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
	dst = slices.Grow(dst, size)[:at+size]
	b := dst[at:]
	switch g.values.kind {
	case random:
		fillRandom(b, mix(g.valueSeed, n))
	case text:
		fillText(b, mix(g.valueSeed, n))
	case letters:
		if g.values.few > 0 {
			n %= g.values.few
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

// FileValues returns how many values the payload file has, 0 without one.
func (g *Generator) FileValues() int {
	if g.values.file == nil {
		return 0
	}
	return g.values.file.count()
}

// HasKey reports whether events have keys.
func (g *Generator) HasKey() bool { return g.keys.kind != none }

// KeyNumber returns the number of the key of event n: n itself for seq, else 0
// to N-1, where 0 is the most frequent of a zipf. Without keys it is 0.
func (g *Generator) KeyNumber(n uint64) uint64 { return g.keys.number(g.keySeed, n) }

// AppendKey appends the key of event n: its number in decimal digits (names in
// those of their radix), with leading zeros to the width of the largest (12 digits for seq), so that keys
// sort as their numbers do and one can take another's place. Without keys it
// appends nothing.
func (g *Generator) AppendKey(dst []byte, n uint64) []byte {
	if g.keys.kind == none {
		return dst
	}
	if g.keys.radix > 0 {
		return appendName(dst, g.keys.number(g.keySeed, n), g.keys.width, uint64(g.keys.radix))
	}
	return appendDecimal(dst, g.keys.number(g.keySeed, n), g.keys.width)
}

// MaxKeySize returns the bytes that no key exceeds, 0 without keys.
func (g *Generator) MaxKeySize() int {
	if g.keys.kind == seq {
		return 20
	}
	return g.keys.width
}

// Headers returns the headers of every event, in the order given. The slice is
// the generator's own.
func (g *Generator) Headers() []Header { return g.headers }

// Describe says in one line what events are made of, for a report.
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
	if n := len(g.headers); n > 0 {
		bytes := 0
		for _, h := range g.headers {
			bytes += len(h.Key) + len(h.Value)
		}
		noun := "headers"
		if n == 1 {
			noun = "header"
		}
		fmt.Fprintf(&b, "; %d %s, %s", n, noun, units.FormatSize(int64(bytes)))
	}
	return b.String()
}
