package place

import (
	"bufio"
	"bytes"
	"io"
)

// byteOrderMark is what some editors and PowerShell put before a text in UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// TextReader reads a text without its byte order mark.
func TextReader(r io.Reader) io.Reader { return &textReader{in: bufio.NewReader(r)} }

// A textReader looks for the mark with its first read, so that making it waits for nothing.
type textReader struct {
	in    *bufio.Reader
	begun bool
}

func (t *textReader) Read(b []byte) (int, error) {
	if !t.begun {
		t.begun = true
		if first, err := t.in.Peek(1); err == nil && first[0] == byteOrderMark[0] {
			if first, err := t.in.Peek(len(byteOrderMark)); err == nil && bytes.Equal(first, byteOrderMark) {
				_, _ = t.in.Discard(len(byteOrderMark)) // they are buffered
			}
		}
	}
	return t.in.Read(b)
}

// TextOf is a text without its byte order mark.
func TextOf(data []byte) []byte { return bytes.TrimPrefix(data, byteOrderMark) }
