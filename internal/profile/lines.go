package profile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine limits a line of a file.
const maxLine = 16 << 20

// lines reads the lines of a file that are not empty.
type lines struct {
	in   *bufio.Reader
	at   int  // number of the line
	open bool // the input ended before the end of the line
	long []byte
}

// Lines calls to with each line of a file that is not empty; it is valid during the call. to returns ErrEnough to end
// reading.
func Lines(in *bufio.Reader, to func(line []byte) error) error {
	l := lines{in: in}
	for {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			if err = to(line); err != nil && !errors.Is(err, ErrEnough) {
				err = l.wrong(err)
			}
		}
		if err != nil {
			return err
		}
	}
}

// next returns a line without its end, valid until the next call; io.EOF at the end.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.in.ReadSlice('\n')
		l.at++
		if errors.Is(err, bufio.ErrBufferFull) {
			l.long = l.long[:0]
			for errors.Is(err, bufio.ErrBufferFull) {
				if l.long = append(l.long, line...); len(l.long) > maxLine {
					return nil, l.wrong(fmt.Errorf("longer than %d MiB", maxLine>>20))
				}
				line, err = l.in.ReadSlice('\n')
			}
			if l.long = append(l.long, line...); len(l.long) > maxLine {
				return nil, l.wrong(fmt.Errorf("longer than %d MiB", maxLine>>20))
			}
			line = l.long
		}
		l.open = errors.Is(err, io.EOF)
		line = bytes.TrimSpace(line)
		switch {
		case len(line) > 0 && (err == nil || errors.Is(err, io.EOF)):
			return line, nil
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case err != nil:
			return nil, l.wrong(err)
		}
	}
}

// wrong is the error of the current line.
func (l *lines) wrong(err error) error {
	if l.open {
		err = incomplete{err}
	}
	return &Error{Where: fmt.Sprintf("line %d", l.at), Err: err}
}
