package framing

import (
	"bytes"
	"fmt"
)

// ChunkSize reads a chunk's first line, hex digits and perhaps extensions.
func ChunkSize(l []byte) (v int64, err error) {
	if i := bytes.IndexByte(l, ';'); i >= 0 {
		l = l[:i]
	}
	l = bytes.TrimRight(l, " \t")
	if len(l) == 0 || len(l) > 10 {
		return 0, fmt.Errorf("a chunk of %.20q bytes", l)
	}
	for _, c := range l {
		switch d := c | 0x20; {
		case '0' <= c && c <= '9':
			v = v<<4 | int64(c-'0')
		case 'a' <= d && d <= 'f':
			v = v<<4 | int64(d-'a'+10)
		default:
			return 0, fmt.Errorf("a chunk of %.20q bytes", l)
		}
	}
	return v, nil
}
