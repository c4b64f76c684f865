package payload

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"carronade/units"
)

type valueKind uint8

const (
	random valueKind = iota
	text
	zero
	compressible
	letters   // capital letters, as kafka-producer-perf-test --record-size
	chars     // of a set
	monotonic // the decimal text of n, as kafka-producer-perf-test --payload-monotonic
	lines     // of a file
	ringed    // pieces of a ring
)

type values struct {
	text     string
	kind     valueKind
	ratio    float64   // of compressible
	distinct uint64    // letters: number of distinct values; 0: all are distinct
	set      charset   // of chars
	file     *file     // of lines
	ring     *ring     // of ringed
	number   *Template // of ringed: the offset; nil: random
}

// sized reports whether values have the requested sizes.
func (v *values) sized() bool { return v.kind != monotonic && v.kind != lines }

func (v *values) describe() string {
	if v.kind == lines {
		return fmt.Sprintf("%s: %s values", v.text, units.FormatCount(uint64(v.file.count())))
	}
	return v.text
}

func parseValues(s string, seed uint64) (values, error) {
	out := values{text: s}
	if path, ok := wholeFile(s); ok {
		out.kind = lines
		var err error
		out.file, err = readFile(path, fileOptions{delim: "\n"})
		return out, err
	}
	name, args, ok := splitCall(s)
	if !ok {
		return out, specError("payload", s, errUnclosed, PayloadForms)
	}
	if name == "ring" {
		out.kind = ringed
		if err := out.parseRing(args, seed); err != nil {
			return out, specError("payload", s, err, PayloadForms)
		}
		return out, nil
	}
	if err := out.parse(name, name != s, args); err != nil {
		return out, specError("payload", s, err, PayloadForms)
	}
	if out.kind != lines {
		return out, nil
	}
	path, how, err := fileArguments(args)
	if err != nil {
		return out, specError("payload", s, err, PayloadForms)
	}
	out.file, err = readFile(path, how)
	return out, err
}

func (v *values) parse(name string, called bool, args string) error {
	plain := map[string]valueKind{"random": random, "text": text, "zero": zero, "letters": letters, "monotonic": monotonic}
	if kind, ok := plain[name]; ok {
		v.kind = kind
		if called && kind == letters {
			n, err := units.ParseCount(args)
			if err == nil && n == 0 {
				err = errors.New("at least 1 must be distinct")
			}
			v.distinct = n
			return err
		}
		if called {
			return fmt.Errorf("%s takes nothing in parentheses", name)
		}
		return nil
	}
	switch name {
	case "compressible":
		ratio, err := units.ParseShare(args)
		if err != nil {
			return err
		}
		if ratio < minRatio {
			return fmt.Errorf("not every codec reaches a ratio below %g; zero compresses to nearly nothing", minRatio)
		}
		v.kind, v.ratio = compressible, ratio
		return nil
	case "chars":
		v.kind = chars
		var err error
		v.set, err = parseChars(args)
		return err
	case "file":
		v.kind = lines // the file is read after parsing
		return nil
	}
	return fmt.Errorf("%q is not a kind of payload", name)
}

// The shape of compressible values. Each block is random bytes followed by filler, so
// that a batch of any length, cut anywhere, has the same ratio.
const (
	block    = 256
	minRatio = 0.02
	// A codec needs bytes to encode a match with the filler: its lengths and offset.
	// Measured, they are 1.5 a block for zstd, 4 for gzip, 5 for lz4 and up to 14 for
	// snappy, which copies at most 64 bytes at once; matchCost is subtracted from the
	// random bytes.
	matchCost = 3
)

// filler repeats itself at a short distance, so that the first event compresses as well
// as the hundredth: 16 bytes are within the window of any codec.
var filler = []byte(strings.Repeat("carronade filler", block/16))

// fillCompressible fills b with bytes that codecs compress to about ratio.
func fillCompressible(b []byte, x uint64, ratio float64) {
	for len(b) > 0 {
		size := min(len(b), block)
		literals := int(math.Round(float64(size) * ratio))
		if size-literals > matchCost {
			literals = max(literals-matchCost, 1)
		} else {
			literals = size // too little filler for any match
		}
		fillRandom(b[:literals], x)
		copy(b[literals:size], filler)
		x += block * golden & (1<<64 - 1)
		b = b[size:]
	}
}

// fillLetters fills b with capital letters, all about equally likely: a codec can save
// the part of each byte that a letter does not need.
func fillLetters(b []byte, x uint64) {
	fillRandom(b, x)
	for i, c := range b {
		b[i] = 'A' + byte(uint16(c)*26>>8)
	}
}

// lastOption is match=. Everything after it is the expression, including commas and
// blanks: no character of a regular expression is reserved for other options.
var lastOption = regexp.MustCompile(`(?s),\s*match=(.*)\z`)

// fileArguments splits "PATH,random,delim=\0". Options come last; text that is not an
// option belongs to the path, including commas.
func fileArguments(args string) (path string, how fileOptions, err error) {
	path, how.delim = args, "\n"
	if at := lastOption.FindStringSubmatchIndex(args); at != nil {
		pattern := args[at[2]:]
		path = args[:at[0]]
		if how.match, err = regexp.Compile(pattern); err != nil {
			return "", how, err
		}
		if how.match.MatchString("") {
			return "", how, fmt.Errorf("match=%s also matches the empty text", pattern)
		}
	}
	for {
		i := strings.LastIndexByte(path, ',')
		if i < 0 {
			break
		}
		option := strings.TrimSpace(path[i+1:])
		value, isDelim := strings.CutPrefix(option, "delim=")
		switch {
		case isDelim:
			if how.delim, err = unescape(value); err != nil {
				return "", how, err
			}
		case option == "random":
			how.shuffled = true
		default:
			return strings.TrimSpace(path), how, nil
		}
		path = path[:i]
	}
	return strings.TrimSpace(path), how, nil
}

// unescape replaces \0 \t \n \r \\ and \xHH, for bytes that a shell does not pass or
// that the form itself uses (\x2c is a comma).
func unescape(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			return "", errors.New(`the delimiter ends in \`)
		}
		if at := strings.IndexByte(`0tnr\`, s[i]); at >= 0 {
			b.WriteByte("\x00\t\n\r\\"[at])
			continue
		}
		if s[i] != 'x' || len(s) < i+3 {
			return "", fmt.Errorf(`the delimiter has \%c, and may have \0 \t \n \r \\ and \xHH`, s[i])
		}
		c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf(`the delimiter has \%s, which is not \xHH`, s[i:i+3])
		}
		b.WriteByte(byte(c))
		i += 2
	}
	if b.Len() == 0 {
		return "", errors.New("the delimiter is empty")
	}
	return b.String(), nil
}
