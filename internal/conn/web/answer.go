package web

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"carronade/internal/conn/framing"
)

// Bounds of an answer.
const (
	maxHead = 16 << 10 // bytes of its status line and fields
	// KeptBody is how many bytes of an answer's body are kept.
	KeptBody = 4 << 10
	// maxSeen is the longest head that is remembered.
	maxSeen = 512
)

var (
	headEnd    = []byte("\r\n\r\n")
	errEndless = errors.New("a header section without end")
)

// ErrAnswer is wrapped by the errors of an invalid answer.
var ErrAnswer = errors.New("not an answer in HTTP/1.1")

// An Answer reads one HTTP/1.1 answer (RFC 9112) from the pieces in which it
// arrives, and keeps only what a sender of events needs. It is reused for all
// answers of one connection: call Reset after each. It skips answers of 1xx.
type Answer struct {
	answerHead
	Body []byte // the first KeptBody bytes
	Size int64  // bytes of the body

	head []byte // the part of the head, or of a chunk's line, that has come
	keep []byte // memory of Body
	seen *seenHead
}

// An answerHead is what the head of an answer says, and what follows from it for reading
// the body.
type answerHead struct {
	Status int
	Close  bool // the connection ends with this answer
	Retry  int  // seconds that the server asks to wait (Retry-After), -1 if it does not

	state   state
	left    int64 // bytes of the body, or of the chunk, to come
	chunked bool
	length  int64 // content-length, -1: none
	http10  bool
}

// A seenHead is the last head that was read whole, and what it says. A server's heads
// differ only once a second, in their date, so that most need no parsing.
type seenHead struct {
	bytes []byte
	answerHead
}

type state uint8

const (
	inHead state = iota
	inBody
	inBodyToEnd // a body that ends with the connection
	inChunkLine
	inChunk
	inChunkEnd
	inTrailer
	isDone
)

// afterBytes is the state after the last byte of a body or a chunk.
var afterBytes = [...]state{inBody: isDone, inChunk: inChunkEnd}

// Reset prepares a for the next answer.
func (a *Answer) Reset() {
	*a = Answer{answerHead: answerHead{length: -1, Retry: -1}, head: a.head[:0], keep: a.keep[:0], seen: a.seen}
}

// Feed reads p, which follows the bytes fed before, up to the end of the answer,
// and returns how many bytes belong to it. done reports that the answer is
// complete. After an error the connection is unusable.
func (a *Answer) Feed(p []byte) (n int, done bool, err error) {
	if a.state == inHead && len(a.head) == 0 && a.keep == nil {
		a.Reset()
		a.keep = make([]byte, 0, KeptBody)
	}
	for a.state != isDone {
		if n == len(p) {
			return n, false, nil
		}
		k, err := a.step(p[n:])
		if n += k; err != nil {
			return n, false, fmt.Errorf("%w: %w", ErrAnswer, err)
		}
	}
	return n, true, nil
}

// End notes that the connection has ended. done reports that the answer is then
// complete.
func (a *Answer) End() (done bool) {
	if a.state == inBodyToEnd {
		a.state, a.Close = isDone, true
	}
	return a.state == isDone
}

// step reads some of p, which is not empty.
func (a *Answer) step(p []byte) (int, error) {
	switch a.state {
	case inHead:
		return a.readHead(p)
	case inBody, inChunk:
		k := int(min(int64(len(p)), a.left))
		a.addBody(p[:k])
		if a.left -= int64(k); a.left == 0 {
			a.state = afterBytes[a.state]
		}
		return k, nil
	case inBodyToEnd:
		a.addBody(p)
		return len(p), nil
	}
	line, k, err := a.line(p)
	if line == nil {
		return k, err
	}
	switch a.state {
	case inChunkLine:
		if a.left, err = framing.ChunkSize(line); err != nil {
			return k, err
		}
		if a.state = inChunk; a.left == 0 {
			a.state = inTrailer
		}
	case inChunkEnd:
		if len(line) != 0 {
			return k, errors.New("a chunk is longer than its stated length")
		}
		a.state = inChunkLine
	case inTrailer:
		if len(line) == 0 {
			a.state = isDone
		}
	}
	a.head = a.head[:0]
	return k, nil
}

// addBody counts bytes of the body, and keeps the first ones.
func (a *Answer) addBody(p []byte) {
	a.Size += int64(len(p))
	a.keep = append(a.keep, p[:min(len(p), KeptBody-len(a.keep))]...)
	a.Body = a.keep
}

// line finds a line's end in p. If there is none it keeps p, and the line is nil.
func (a *Answer) line(p []byte) (line []byte, n int, err error) {
	i := bytes.IndexByte(p, '\n')
	if i < 0 {
		if len(a.head)+len(p) > maxHead {
			return nil, len(p), errors.New("a line without end")
		}
		a.head = append(a.head, p...)
		return nil, len(p), nil
	}
	line = p[:i]
	if len(a.head) > 0 {
		a.head = append(a.head, line...)
		line = a.head
	}
	if len(line) == 0 || line[len(line)-1] != '\r' {
		return nil, i + 1, errors.New("a line that ends without a carriage return")
	}
	return line[: len(line)-1 : len(line)], i + 1, nil
}

// readHead reads the status line and the fields. It copies them only if they come
// in several pieces.
func (a *Answer) readHead(p []byte) (int, error) {
	if len(a.head) == 0 {
		if n := a.recall(p); n > 0 {
			return n, nil
		}
		if n := bytes.Index(p, headEnd); n >= 0 && n <= maxHead {
			err := a.parseHead(p[:n+2])
			if n += len(headEnd); err == nil {
				a.remember(p[:n])
			}
			return n, err
		}
		if len(p) > maxHead {
			return len(p), errEndless
		}
		a.head = append(a.head, p...)
		return len(p), nil
	}
	// The end may be split between two pieces.
	had := len(a.head)
	from := max(0, had-len(headEnd)+1)
	a.head = append(a.head, p[:min(len(p), maxHead+len(headEnd)-had)]...)
	n := bytes.Index(a.head[from:], headEnd)
	if n < 0 {
		if len(a.head) >= maxHead {
			return len(p), errEndless
		}
		return len(p), nil
	}
	n += from
	err := a.parseHead(a.head[:n+2])
	a.head = a.head[:0]
	return n + len(headEnd) - had, err
}

// recall reads the head of p if it is the one that was remembered, and returns its length.
func (a *Answer) recall(p []byte) int {
	s := a.seen
	if s == nil || !bytes.HasPrefix(p, s.bytes) {
		return 0
	}
	a.answerHead = s.answerHead
	return len(s.bytes)
}

// remember keeps a head that was just parsed, unless another follows it.
func (a *Answer) remember(head []byte) {
	if len(head) > maxSeen || a.state == inHead {
		return
	}
	if a.seen == nil {
		a.seen = &seenHead{}
	}
	*a.seen = seenHead{append(a.seen.bytes[:0], head...), a.answerHead}
}

// parseHead reads lines that each end with CR LF.
func (a *Answer) parseHead(h []byte) error {
	a.length, a.chunked, a.Close, a.Retry = -1, false, false, -1
	i := bytes.IndexByte(h, '\n')
	if err := a.parseStatus(h[:i+1]); err != nil {
		return err
	}
	for h = h[i+1:]; len(h) > 0; h = h[i+1:] {
		i = bytes.IndexByte(h, '\n')
		if i < 1 || h[i-1] != '\r' {
			return errors.New("a field that ends without a carriage return")
		}
		if err := a.parseField(h[:i-1]); err != nil {
			return err
		}
	}
	switch {
	case a.Status < 200 && a.Status != 101:
		return nil // another answer follows
	case a.Status == 101:
		return errors.New("it switches the protocol")
	case a.Status == 204 || a.Status == 304:
		a.state = isDone
	case a.chunked && a.length >= 0:
		return errors.New("both a length and chunks")
	case a.chunked:
		a.state = inChunkLine
	case a.length > 0:
		a.state, a.left = inBody, a.length
	case a.length == 0:
		a.state = isDone
	default:
		a.state, a.Close = inBodyToEnd, true
	}
	return nil
}

// parseStatus reads "HTTP/1.1 202 Accepted\r\n".
func (a *Answer) parseStatus(l []byte) error {
	if len(l) < len("HTTP/1.1 202\r\n") || string(l[:7]) != "HTTP/1." || l[7] != '0' && l[7] != '1' || l[8] != ' ' || l[len(l)-2] != '\r' || l[12] != ' ' && l[12] != '\r' {
		return fmt.Errorf("it begins %.40q", l)
	}
	a.Status = 0
	for _, c := range l[9:12] {
		if c < '0' || c > '9' {
			return fmt.Errorf("it begins %.40q", l)
		}
		a.Status = a.Status*10 + int(c-'0')
	}
	if a.Status < 100 {
		return fmt.Errorf("a status of %d", a.Status)
	}
	a.http10 = l[7] == '0'
	a.Close = a.http10
	return nil
}

func (a *Answer) parseField(l []byte) error {
	colon := bytes.IndexByte(l, ':')
	if colon <= 0 || l[0] == ' ' || l[0] == '\t' || l[colon-1] == ' ' || bytes.IndexByte(l, '\r') >= 0 {
		return fmt.Errorf("a field %.40q", l)
	}
	name, value := l[:colon], bytes.Trim(l[colon+1:], " \t")
	switch {
	case is(name, "content-length"):
		v, err := decimal(value)
		if err != nil {
			return fmt.Errorf("content-length %.20q: %w", value, err)
		}
		if a.length >= 0 && a.length != v {
			return errors.New("two lengths")
		}
		a.length = v
	case is(name, "transfer-encoding"):
		if !is(value, "chunked") {
			return fmt.Errorf("transfer-encoding %.20q", value)
		}
		if a.http10 || a.chunked {
			return errors.New("chunks where none are allowed")
		}
		a.chunked = true
	case is(name, "connection"):
		for word := range bytes.SplitSeq(value, []byte(",")) {
			switch word = bytes.Trim(word, " \t"); {
			case is(word, "close"):
				a.Close = true
			case is(word, "keep-alive") && a.http10:
				a.Close = false
			}
		}
	case is(name, "retry-after"):
		if v, err := decimal(value); err == nil && v <= math.MaxInt32 {
			a.Retry = int(v)
		}
	}
	return nil
}

// is compares case-insensitively; word is lower case.
func is(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

func decimal(b []byte) (v int64, err error) {
	if len(b) == 0 || len(b) > 13 {
		return 0, errors.New("no length of a body")
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, errors.New("not a number")
		}
		v = v*10 + int64(c-'0')
	}
	return v, nil
}

// Begun reports whether an answer has come in part.
func (a *Answer) Begun() bool { return a.state != inHead || len(a.head) > 0 }
