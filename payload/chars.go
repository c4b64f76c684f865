package payload

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// mostChars limits the size of a set of characters; repeated characters count each
// time.
const mostChars = 256

// A charset is a set of characters that values are drawn from, stored as all pairs of
// them: drawing two bytes at once is twice as fast as one, and 16 random bits
// distribute more evenly over the pairs than 8 over the characters.
type charset []uint16

// parseChars parses a set: characters, and ranges such as a-z. A dash at either end
// stands for itself.
func parseChars(s string) (charset, error) {
	var set []byte
	for i := 0; i < len(s); i++ {
		from, to := s[i], s[i]
		if i+2 < len(s) && s[i+1] == '-' {
			to = s[i+2]
			i += 2
		}
		if from < ' ' || from > '~' || to < ' ' || to > '~' {
			return nil, errors.New("a set may only have printable ASCII characters")
		}
		if to < from {
			return nil, fmt.Errorf("the range %c-%c is empty: it is %c-%c, or a dash at the end of the set", from, to, to, from)
		}
		for c := int(from); c <= int(to); c++ {
			set = append(set, byte(c))
		}
	}
	switch {
	case len(set) == 0:
		return nil, errors.New("the set is empty")
	case len(set) > mostChars:
		return nil, fmt.Errorf("a set has at most %d characters, not %d", mostChars, len(set))
	}
	out := make(charset, 0, len(set)*len(set))
	for _, a := range set {
		for _, b := range set {
			out = append(out, uint16(a)|uint16(b)<<8)
		}
	}
	return out, nil
}

// fillChars fills b with characters of the set, all about equally likely.
func fillChars(b []byte, x uint64, set charset) {
	n := uint64(len(set))
	four := func(x uint64) uint64 {
		w := word(x)
		return uint64(set[(w&0xffff)*n>>16]) |
			uint64(set[(w>>16&0xffff)*n>>16])<<16 |
			uint64(set[(w>>32&0xffff)*n>>16])<<32 |
			uint64(set[(w>>48)*n>>16])<<48
	}
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, four(x))
		x += golden
		b = b[8:]
	}
	if len(b) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], four(x))
		copy(b, last[:])
	}
}
