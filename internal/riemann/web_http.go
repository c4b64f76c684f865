package riemann

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"
)

// An httpFraming speaks HTTP/1.1: a message is a PUT with one JSON event per
// line, answered by one line per event. It does not pipeline requests: servers
// differ in how they treat a second request before the first is answered, and
// proxies do not answer it.
type httpFraming struct {
	head []byte // of a request, up to the length of its body
	most int    // bytes of a message
	last bool   // the newest answer was the last of its connection
}

// The length of a body has a fixed width, padded with blanks on the left, so that
// it can be filled in after the body.
const (
	lengthDigits = 10
	headEnd      = "\r\n\r\n"
)

func newHTTPFraming(c *config, addr string) *httpFraming {
	t := &httpFraming{head: fmt.Appendf(nil, "PUT %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: carronade\r\nContent-Type: application/json\r\nContent-Length: ", c.path, addr)}
	t.most = len(t.head) + lengthDigits + len(headEnd) + c.perMessage()*(c.widestJSON+1)
	return t
}

func (t *httpFraming) size() int         { return t.most }
func (t *httpFraming) oneInFlight() bool { return true }
func (t *httpFraming) closing() bool     { return t.last }

// handshake does nothing: HTTP has none.
func (t *httpFraming) handshake(context.Context, net.Conn, string) error { return nil }

func (t *httpFraming) append(dst []byte, p *encoder, first uint64, messages, events int, now time.Time) ([]byte, int64) {
	var bytes int64
	for range messages {
		dst = append(dst, t.head...)
		at := len(dst)
		for range lengthDigits {
			dst = append(dst, ' ')
		}
		dst = append(dst, headEnd...)
		body := len(dst)
		var n int64
		dst, n = p.json(dst, first, events, now)
		bytes += n
		first += uint64(events)
		for k, left := at+lengthDigits-1, len(dst)-body; left > 0; k-- {
			dst[k] = byte('0' + left%10)
			left /= 10
		}
	}
	return dst, bytes
}

func (t *httpFraming) messageSize(b []byte) int {
	at := len(t.head)
	n, _ := strconv.Atoi(string(bytes.TrimLeft(b[at:at+lengthDigits], " ")))
	return at + lengthDigits + len(headEnd) + n
}

// An httpAnswer is a parsed response.
type httpAnswer struct {
	code int
	text string // status code and reason
	body []byte // a part of the response, or a copy if it came in chunks
	last bool   // the server closes the connection after it (RFC 9112, section 9.3)
}

// errTooLong is a response longer than mostRefusal.
var errTooLong = errors.New("a response longer than a mebibyte")

// nextResponse reads the first complete response of b. A nil rest without an
// error means that b has none yet. It skips interim responses (1xx).
func nextResponse(b []byte) (a httpAnswer, rest []byte, err error) {
	for {
		end := bytes.Index(b, []byte(headEnd))
		if end < 0 {
			if len(b) > mostRefusal {
				return a, nil, errTooLong
			}
			if n := min(len(b), len("HTTP/1.")); string(b[:n]) != "HTTP/1."[:n] {
				return a, nil, fmt.Errorf("an answer that is not HTTP: %.60q", b)
			}
			return a, nil, nil
		}
		head, body := b[:end], b[end+len(headEnd):]
		length, chunked, err := a.readHead(head)
		if err != nil {
			return a, nil, err
		}
		if a.code < 200 {
			b = body
			continue
		}
		switch {
		case a.code == 204 || a.code == 304:
			return a, nonNil(body), nil
		case chunked:
			return a.readChunks(body)
		case length < 0:
			return a, nil, errors.New("an answer that ends only with its connection")
		case length > mostRefusal:
			return a, nil, errTooLong
		case length > len(body):
			return a, nil, nil
		}
		a.body = body[:length:length]
		return a, nonNil(body[length:]), nil
	}
}

// nonNil returns b, or an empty slice if b is nil.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// readHead reads the status line and the length of the body; -1: not given.
func (a *httpAnswer) readHead(head []byte) (length int, chunked bool, err error) {
	line, fields, _ := bytes.Cut(head, []byte("\r\n"))
	proto, status, _ := bytes.Cut(line, []byte(" "))
	code, _, _ := bytes.Cut(status, []byte(" "))
	a.code, err = strconv.Atoi(string(code))
	if err != nil || !bytes.HasPrefix(proto, []byte("HTTP/1.")) || a.code < 100 || a.code > 999 {
		return 0, false, fmt.Errorf("an answer that is not HTTP: %.60q", line)
	}
	if a.code == 101 {
		return 0, false, errors.New("an answer that changes the protocol, which was not requested")
	}
	a.text = string(bytes.TrimSpace(status))
	length = -1
	var kept, closed bool
	for len(fields) > 0 {
		var field []byte
		field, fields, _ = bytes.Cut(fields, []byte("\r\n"))
		name, value, ok := bytes.Cut(field, []byte(":"))
		if !ok || len(name) == 0 || name[0] == ' ' || name[0] == '\t' {
			return 0, false, fmt.Errorf("an answer with the invalid field %.60q", field)
		}
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			n, err := strconv.ParseUint(string(value), 10, 31)
			if err != nil {
				return 0, false, fmt.Errorf("an answer with the invalid length %.20q", value)
			}
			if length >= 0 && length != int(n) {
				return 0, false, errors.New("an answer with two lengths")
			}
			length = int(n)
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			if !bytes.EqualFold(value, []byte("chunked")) {
				return 0, false, fmt.Errorf("an answer with the unknown encoding %.40q", value)
			}
			chunked = true
		case bytes.EqualFold(name, []byte("Connection")):
			for option := range bytes.SplitSeq(value, []byte(",")) {
				option = bytes.TrimSpace(option)
				kept = kept || bytes.EqualFold(option, []byte("keep-alive"))
				closed = closed || bytes.EqualFold(option, []byte("close"))
			}
		}
	}
	a.last = closed || string(proto) == "HTTP/1.0" && !kept
	return length, chunked, nil
}

// readChunks reads a body in chunks (RFC 9112, section 7.1).
func (a *httpAnswer) readChunks(b []byte) (httpAnswer, []byte, error) {
	for {
		line, rest, ok := bytes.Cut(b, []byte("\r\n"))
		if !ok {
			if len(b) > mostRefusal {
				return *a, nil, errTooLong
			}
			return *a, nil, nil
		}
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 31)
		switch {
		case err != nil:
			return *a, nil, fmt.Errorf("a chunk with the invalid length %.20q", size)
		case n+uint64(len(a.body)) > mostRefusal:
			return *a, nil, errTooLong
		case uint64(len(rest)) < n+2 && n > 0:
			return *a, nil, nil
		case n == 0:
			return a.readTrailer(rest)
		case string(rest[n:n+2]) != "\r\n":
			return *a, nil, errors.New("a chunk that does not end at its stated length")
		}
		a.body = append(a.body, rest[:n]...)
		b = rest[n+2:]
	}
}

// readTrailer skips the fields after a body.
func (a *httpAnswer) readTrailer(b []byte) (httpAnswer, []byte, error) {
	for {
		line, rest, ok := bytes.Cut(b, []byte("\r\n"))
		switch {
		case !ok && len(b) > mostRefusal:
			return *a, nil, errTooLong
		case !ok:
			return *a, nil, nil
		case len(line) == 0:
			return *a, nonNil(rest), nil
		}
		b = rest
	}
}

func (t *httpFraming) answers(b []byte, _, _ int) (acks int, msg, rest []byte, err error) {
	if len(b) == 0 {
		return 0, nil, b, nil
	}
	a, rest, err := nextResponse(b)
	if err != nil || rest == nil {
		return 0, nil, b, err
	}
	t.last = a.last
	n := len(b) - len(rest)
	return 0, b[:n:n], rest, nil
}

// refusals reads the lines of an answer. A server that cannot parse a line says
// so, and accepts none of the following ones.
func (t *httpFraming) refusals(msg []byte, events int32) (refused int32, text string, err error) {
	a, _, err := nextResponse(msg)
	if err != nil {
		return 0, "", err
	}
	if a.code < 200 || a.code > 299 {
		words, _, _ := bytes.Cut(bytes.TrimSpace(a.body), []byte("\n"))
		text = "HTTP " + a.text
		if len(words) > 0 {
			text = fmt.Sprintf("%s: %.200s", text, words)
		}
		return math.MaxInt32, text, nil
	}
	took := int32(0)
	for line := range bytes.Lines(a.body) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		no, why, err := reply(line)
		switch {
		case err != nil:
			return 0, "", err
		case !no:
			took++
		case text == "":
			text = why
		}
	}
	if took > events {
		return 0, "", errTooManyAnswers
	}
	if took < events && text == "" {
		text = "fewer answer lines than events"
	}
	return events - took, text, nil
}
