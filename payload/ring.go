package payload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"carronade/internal/place"
	"carronade/units"
)

// maxRing limits a ring, which is kept in memory.
const maxRing = 1 << 30

// A ring is a block of bytes of which values are pieces: a piece begins at any offset and
// goes on at the start when it reaches the end. These are the data of mongoose, where the
// offset is the number of an item. A ring does not change, so it is safe for concurrent use.
type ring struct{ data []byte }

// xorShift is the generator of mongoose's data and names.
func xorShift(x uint64) uint64 {
	x ^= x << 21
	x ^= x >> 35
	return x ^ x<<4
}

// newRing makes the ring of a seed: 64-bit words, the most significant byte first, of which
// the first one is the seed.
func newRing(seed uint64, size int) *ring {
	b := make([]byte, 0, size+8)
	for ; len(b) < size; seed = xorShift(seed) {
		b = binary.BigEndian.AppendUint64(b, seed)
	}
	return &ring{b[:size]}
}

// fileRing makes a ring of a file: its first bytes, repeated if it has fewer.
func fileRing(path string, size int) (*ring, error) {
	f, err := place.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the file of the ring: %w: check the path that ring(...) names", err)
	}
	defer f.Close()
	b := make([]byte, size)
	n, err := io.ReadFull(f, b)
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("the file of the ring, %s, is empty", path)
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("reading the file of the ring: %w", err)
	}
	for n < size {
		n += copy(b[n:], b[:n])
	}
	return &ring{b}, nil
}

// append appends the piece of a size at an offset.
func (r *ring) append(dst []byte, offset uint64, size int) []byte {
	for at := int(offset % uint64(len(r.data))); size > 0; at = 0 {
		n := min(size, len(r.data)-at)
		dst = append(dst, r.data[at:at+n]...)
		size -= n
	}
	return dst
}

// has reports whether a value is the piece at an offset.
func (r *ring) has(value []byte, offset uint64) bool {
	for at := int(offset % uint64(len(r.data))); len(value) > 0; at = 0 {
		n := min(len(value), len(r.data)-at)
		if string(value[:n]) != string(r.data[at:at+n]) {
			return false
		}
		value = value[n:]
	}
	return true
}

// A ringForm is the parsed text of ring(...).
type ringForm struct {
	size   int
	number *Template // the offset of an event; nil: random
	middle string    // what is between the size and the source, if it is not an expression
	source string    // a seed in hexadecimal digits, or file:PATH
}

// parseRing reads the arguments of a ring: SIZE,SEED or SIZE,file:PATH, with an expression or
// a call such as names(36) between them.
func parseRing(args string, seed uint64) (f ringForm, err error) {
	size, rest, ok := strings.Cut(args, ",")
	if !ok {
		return f, errors.New("a ring has a size and a seed or a file")
	}
	n, err := units.ParseSize(strings.TrimSpace(size))
	if err != nil {
		return f, err
	}
	if n < 1 || n > maxRing {
		return f, fmt.Errorf("the size of a ring is from 1 byte to %s", units.FormatSize(maxRing))
	}
	f.size = int(n)
	rest = strings.TrimSpace(rest)
	if HasExpression(rest) {
		text, source, ok := CutText(rest, ',')
		if !ok {
			return f, errors.New("a ring has a seed or a file after the expression")
		}
		if f.number, err = parseNumber(text, seed); err != nil {
			return f, err
		}
		rest = source
	} else if i := strings.Index(rest, "),"); i >= 0 && !strings.HasPrefix(rest, "file:") {
		f.middle, rest = rest[:i+1], rest[i+2:]
	}
	f.source = strings.TrimSpace(rest)
	return f, nil
}

// parseNumber compiles an expression that is an integer.
func parseNumber(text string, seed uint64) (*Template, error) {
	t, err := ParseTemplate(text, TemplateOptions{Seed: seed, Use: Repeatable})
	if err != nil {
		return nil, err
	}
	if !t.IsInteger() {
		return nil, fmt.Errorf("%q is not an expression that is an integer, and nothing else", shortened(text))
	}
	return t, nil
}

// make makes the ring.
func (f *ringForm) make() (*ring, error) {
	if path, ok := wholeFile(f.source); ok {
		return fileRing(path, f.size)
	}
	seed, err := parseSeed(f.source)
	if err != nil {
		return nil, err
	}
	return newRing(seed, f.size), nil
}

// parseSeed reads a seed in hexadecimal digits, as mongoose writes it.
func parseSeed(text string) (uint64, error) {
	if n, err := strconv.ParseUint(text, 16, 64); err == nil {
		return n, nil
	}
	n, err := strconv.ParseInt(text, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a seed: want at most 16 hexadecimal digits, or file:PATH", shortened(text))
	}
	return uint64(n), nil
}

// parseRing makes the ring of values.
func (v *values) parseRing(args string, seed uint64) error {
	f, err := parseRing(args, seed)
	if err == nil && f.middle != "" {
		err = fmt.Errorf("%s is only possible where values are checked", f.middle)
	}
	if err != nil {
		return err
	}
	v.number = f.number
	v.ring, err = f.make()
	return err
}

// offset is where the value of event n begins in the ring.
func (v *values) offset(seed, n uint64) uint64 {
	if v.number == nil {
		return mix(seed, n) >> 1
	}
	return uint64(v.number.Integer(n)) & (1<<63 - 1)
}

// ringVaries reports whether a payload is a ring with an expression for the offset that is not
// the same for all events.
func ringVaries(payload string) bool {
	args, ok := strings.CutPrefix(strings.TrimSpace(payload), "ring(")
	if !ok {
		return false
	}
	f, err := parseRing(strings.TrimSuffix(args, ")"), 0)
	return err == nil && f.number != nil && !f.number.Constant()
}
