package scenario

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// The protocol: the parent sends the Script as the first line, and then one reply for each
// request. The child sends requests, one at a time, and ends with an end.

// The requests.
const (
	doStart  = "start"
	doStop   = "stop"
	doAwait  = "await"
	doCheck  = "check"
	doReport = "report"
	doMark   = "mark"
	doPrint  = "print"
	doWarn   = "warn"
	doEnd    = "end"
)

// mostLine is the longest line of the child, in bytes. A longer one is a fault of the script.
const mostLine = 16 << 20

// errLongLine is the error of a line beyond mostLine.
var errLongLine = fmt.Errorf("a request of the script has more than %d MiB", mostLine>>20)

// A request is one line of the child.
type request struct {
	Do      string        `json:"do"`
	Step    *Step         `json:"step,omitempty"`
	Numbers []int         `json:"numbers,omitempty"`
	Limit   time.Duration `json:"limit,omitempty"`
	At      string        `json:"at,omitempty"`
	Text    string        `json:"text,omitempty"` // to print or to mark, or a reference of a report
	Kind    string        `json:"kind,omitempty"` // of a mark
	Limits  []string      `json:"limits,omitempty"`
	Fault   *Fault        `json:"fault,omitempty"` // how the script ended; nil: well
}

// A reply is one line of the parent.
type reply struct {
	Number int             `json:"number,omitempty"`
	Ended  *Ended          `json:"ended,omitempty"`
	OK     bool            `json:"ok,omitempty"` // all limits hold
	Report json.RawMessage `json:"report,omitempty"`
	Fault  *Fault          `json:"fault,omitempty"`
}

// A lines reads and writes JSON lines.
type lines struct {
	in  *bufio.Reader
	out io.Writer
}

// newLines reads from in and writes to out.
func newLines(in io.Reader, out io.Writer) *lines {
	return &lines{in: bufio.NewReader(in), out: out}
}

// encode returns a value as one line.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	if b.Len() > mostLine {
		return nil, errLongLine
	}
	return b.Bytes(), nil
}

// write writes a value as one line.
func (l *lines) write(v any) error {
	text, err := encode(v)
	if err == nil {
		_, err = l.out.Write(text)
	}
	return err
}

// read reads a line into v. At the end of the input it returns io.EOF.
func (l *lines) read(v any) error {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		if line = append(line, part...); len(line) > mostLine {
			return errLongLine
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) && len(line) > 0 {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("read a line of the script's process: %w", err)
	}
	return nil
}
