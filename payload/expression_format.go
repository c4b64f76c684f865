package payload

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a width and a precision.
const (
	maxWidthOf     = 1000
	maxPrecisionOf = 100
)

// A conversion is one %... of a format.
type conversion struct {
	verb                            byte
	argument                        int // its position, from 1; 0: the next one
	left, zeros, sign, comma, blank bool
	width, precision                int // precision: -1 for none
}

// A piece of a format appends a literal or a converted value.
type piece struct {
	literal string
	value   func(c ctx, dst []byte) []byte
}

// makeFormatted makes string:format, Java's String.format.
func makeFormatted(_ *builder, args []node) (node, error) {
	format, values := args[0], args[1:]
	if format.varies {
		return node{}, constantError(format, "the format")
	}
	if format.env {
		return node{}, &TemplateError{format.at + 1, "the format must be in the text: a variable of the environment may be a value, as for %s"}
	}
	pieces, most, err := parseFormat(format, values)
	if err != nil {
		return node{}, err
	}
	return textNode(traitsOf(args), most, func(c ctx, dst []byte) []byte {
		for i := range pieces {
			if p := &pieces[i]; p.value != nil {
				dst = p.value(c, dst)
			} else {
				dst = append(dst, p.literal...)
			}
		}
		return dst
	}), nil
}

func parseFormat(format node, values []node) (pieces []piece, most int, err error) {
	next := 0
	used := make([]bool, len(values))
	rest := format.known
	for rest != "" {
		if err := checkLength(most, format.at); err != nil {
			return nil, 0, err
		}
		n := strings.IndexByte(rest, '%')
		if n < 0 {
			n = len(rest)
		}
		if n > 0 {
			pieces, most, rest = append(pieces, piece{literal: rest[:n]}), most+n, rest[n:]
			continue
		}
		c, n, err := parseConversion(rest)
		if err != nil {
			return nil, 0, &TemplateError{format.at + 1, err.Error()}
		}
		text := rest[:n]
		rest = rest[n:]
		switch c.verb {
		case '%':
			pieces, most = append(pieces, piece{literal: "%"}), most+1
			continue
		case 'n':
			pieces, most = append(pieces, piece{literal: "\n"}), most+1
			continue
		}
		arg := c.argument - 1
		if c.argument == 0 {
			arg, next = next, next+1
		}
		if arg >= len(values) {
			return nil, 0, &TemplateError{format.at + 1, fmt.Sprintf("the format has %s, and no value for it", text)}
		}
		used[arg] = true
		value, longest, err := c.convert(values[arg], text)
		if err != nil {
			return nil, 0, err
		}
		if c.width > 0 || c.comma {
			value = c.padded(value)
			longest = max(longest+longest/3, utf8.UTFMax*c.width)
		}
		pieces, most = append(pieces, piece{value: value}), most+longest
	}
	if i := slices.Index(used, false); i >= 0 {
		return nil, 0, &TemplateError{values[i].at + 1, "the format has no place for this value"}
	}
	return pieces, most, checkLength(most, format.at)
}

// checkLength checks a text that is made of others, before anything makes it: nested ones grow
// exponentially.
func checkLength(most, at int) error {
	if most > maxTemplate {
		return &TemplateError{at + 1, fmt.Sprintf("this text may become %d bytes long or more, and the limit is %d", most, maxTemplate)}
	}
	return nil
}

// parseConversion reads the conversion that s begins with, and returns its length.
func parseConversion(s string) (c conversion, n int, err error) {
	c.precision = -1
	i := 1
	number := func() int {
		at, v := i, 0
		for i < len(s) && isDigit(s[i]) && v < 1e6 {
			v = v*10 + int(s[i]-'0')
			i++
		}
		if at == i {
			return -1
		}
		return v
	}
	if i < len(s) && s[i] != '0' {
		if v := number(); i < len(s) && s[i] == '$' && v > 0 {
			c.argument = v
			i++
		} else {
			i = 1
		}
	}
	flags := map[byte]*bool{'-': &c.left, '0': &c.zeros, '+': &c.sign, ',': &c.comma, ' ': &c.blank}
	for i < len(s) && flags[s[i]] != nil {
		*flags[s[i]] = true
		i++
	}
	c.width = max(0, number())
	if i < len(s) && s[i] == '.' {
		i++
		if c.precision = number(); c.precision < 0 {
			return c, 0, fmt.Errorf("the format has %q: a precision is a number", s[:i])
		}
	}
	if i >= len(s) {
		return c, 0, fmt.Errorf("the format ends within %q; write %%%% for a percent sign", s)
	}
	c.verb = s[i]
	text := s[:i+1]
	fraction := c.verb == 'e' || c.verb == 'f'
	whole := strings.IndexByte("dxXo", c.verb) >= 0
	switch {
	case strings.IndexByte("dxXoefsbcn%", c.verb) < 0:
		return c, 0, fmt.Errorf("the format has %q: want one of %%d %%x %%X %%o %%e %%f %%s %%b %%c %%n %%%%", text)
	case c.width > maxWidthOf || c.precision > maxPrecisionOf:
		return c, 0, fmt.Errorf("the format has %q: a width is at most %d, a precision at most %d", text, maxWidthOf, maxPrecisionOf)
	case (c.verb == '%' || c.verb == 'n') && i > 1:
		return c, 0, fmt.Errorf("the format has %q: %%%c takes nothing before it", text, c.verb)
	case (c.sign || c.blank) && c.verb != 'd' && !fraction, c.comma && c.verb != 'd' && c.verb != 'f', c.zeros && !whole && !fraction,
		c.precision >= 0 && !fraction && c.verb != 's' && c.verb != 'b', c.sign && c.blank, c.left && c.zeros,
		(c.left || c.zeros) && c.width == 0:
		return c, 0, fmt.Errorf("the format has %q: these flags have no meaning together, or not for %%%c", text, c.verb)
	}
	return c, i + 1, nil
}

// convert returns what appends a value, before it is padded, and its maximum bytes.
func (c *conversion) convert(v node, text string) (func(ctx, []byte) []byte, int, error) {
	wrong := func(want string) error {
		return &TemplateError{v.at + 1, fmt.Sprintf("%s takes %s, and this is %v", text, want, v.kind)}
	}
	switch c.verb {
	case 'd', 'x', 'X', 'o':
		if v.kind != kindInteger {
			return nil, 0, wrong("an integer")
		}
		x := v.integer
		switch c.verb {
		case 'd':
			return func(at ctx, dst []byte) []byte {
				n := x(at)
				return strconv.AppendInt(c.signed(dst, n < 0), n, 10)
			}, maxInteger + 1, nil
		case 'o':
			return func(at ctx, dst []byte) []byte { return strconv.AppendUint(dst, uint64(x(at)), 8) }, 22, nil
		case 'x':
			return func(at ctx, dst []byte) []byte { return strconv.AppendUint(dst, uint64(x(at)), 16) }, 16, nil
		}
		return func(at ctx, dst []byte) []byte {
			from := len(dst)
			dst = strconv.AppendUint(dst, uint64(x(at)), 16)
			upper(dst[from:])
			return dst
		}, 16, nil
	case 'e', 'f':
		if v.kind != kindReal && v.kind != kindInteger {
			return nil, 0, wrong("a number")
		}
		x, precision, verb := v.asReal().real, c.precision, c.verb
		if precision < 0 {
			precision = 6
		}
		most := precision + 10
		if verb == 'f' {
			most = precision + 312
		}
		return func(at ctx, dst []byte) []byte {
			n := x(at)
			switch {
			case math.IsNaN(n):
				return appendReal(dst, n, 64)
			case math.IsInf(n, 0):
				return appendReal(c.signed(dst, n < 0), n, 64)
			}
			if dst = c.signed(dst, math.Signbit(n)); math.Signbit(n) {
				dst = append(dst, '-')
			}
			return appendRounded(dst, math.Abs(n), verb, precision)
		}, most, nil
	case 'c':
		if v.kind != kindInteger {
			return nil, 0, wrong("the number of a character")
		}
		x := v.integer
		return func(at ctx, dst []byte) []byte {
			r := x(at)
			if r < 0 || r > utf8.MaxRune {
				r = utf8.RuneError
			}
			return utf8.AppendRune(dst, rune(r))
		}, utf8.UTFMax, nil
	case 'b':
		if v.kind != kindBool {
			return nil, 0, wrong("true or false")
		}
	}
	t, ok := v.asText()
	if !ok {
		return nil, 0, wrong("a value")
	}
	if c.precision < 0 {
		return t.text, t.most, nil
	}
	return func(at ctx, dst []byte) []byte {
		from := len(dst)
		dst = t.text(at, dst)
		return dst[:from+runes(dst[from:], c.precision)]
	}, t.most, nil
}

// signed appends the sign of a number that is not negative.
func (c *conversion) signed(dst []byte, negative bool) []byte {
	switch {
	case negative:
	case c.sign:
		return append(dst, '+')
	case c.blank:
		return append(dst, ' ')
	}
	return dst
}

// padded returns a conversion that inserts commas, and pads to the width.
func (c *conversion) padded(value func(ctx, []byte) []byte) func(ctx, []byte) []byte {
	return func(at ctx, dst []byte) []byte {
		from := len(dst)
		dst = value(at, dst)
		sign := 0
		if n := len(dst) - from; n > 1 && strings.IndexByte("+- ", dst[from]) >= 0 && c.verb != 's' && c.verb != 'c' {
			sign = 1
		}
		digits := from + sign
		finite := len(dst) > digits && isDigit(dst[digits])
		if c.comma && finite {
			end := digits
			for end < len(dst) && isDigit(dst[end]) {
				end++
			}
			for i := end - 3; i > digits; i -= 3 {
				dst = slices.Insert(dst, i, ',')
			}
		}
		missing := c.width - utf8.RuneCount(dst[from:])
		if missing <= 0 {
			return dst
		}
		where, pad := from, byte(' ')
		switch {
		case c.left:
			where = len(dst)
		case c.zeros && (finite || strings.IndexByte("xXo", c.verb) >= 0):
			where, pad = digits, '0'
		}
		return insertPadding(dst, where, missing, pad)
	}
}

// insertPadding inserts n bytes at an index.
func insertPadding(b []byte, at, n int, pad byte) []byte {
	for range n {
		b = append(b, pad)
	}
	if end := len(b) - n; at < end {
		copy(b[at+n:], b[at:end])
		for i := range n {
			b[at+i] = pad
		}
	}
	return b
}

func upper(b []byte) {
	for i, c := range b {
		if c >= 'a' && c <= 'f' {
			b[i] = c - 'a' + 'A'
		}
	}
}

// runes returns the bytes of the first n characters of b.
func runes(b []byte, n int) int {
	at := 0
	for ; n > 0 && at < len(b); n-- {
		_, size := utf8.DecodeRune(b[at:])
		at += size
	}
	return at
}
