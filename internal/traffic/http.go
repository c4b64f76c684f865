package traffic

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

	"carronade/internal/wire/apm"
)

// maxHead limits the head of an HTTP request.
const maxHead = 64 << 10

// isHTTP reports whether bytes begin an HTTP request that may have a body.
func isHTTP(b []byte) bool {
	for _, method := range []string{"POST /", "PUT /", "GET /", "OPTIONS /", "HEAD /"} {
		if bytes.HasPrefix(b, []byte(method)) {
			return true
		}
	}
	return false
}

// A request is the head of an HTTP request.
type request struct {
	path     string
	length   int // of the body; -1: in chunks
	encoding string
}

func parseHead(head []byte) (r request, err error) {
	text := strings.Split(string(head), "\r\n")
	words := strings.Fields(text[0])
	if len(words) != 3 {
		return r, errors.New("it is not a request of HTTP")
	}
	r.path, _, _ = strings.Cut(words[1], "?")
	for _, line := range text[1:] {
		name, value, _ := strings.Cut(line, ":")
		value = strings.ToLower(strings.TrimSpace(value))
		switch strings.ToLower(name) {
		case "content-length":
			if r.length, err = strconv.Atoi(value); err != nil || r.length < 0 || r.length > maxMessage {
				return r, fmt.Errorf("a body of %s bytes", value)
			}
		case "transfer-encoding":
			if value == "chunked" {
				r.length = -1
			}
		case "content-encoding":
			r.encoding = value
		}
	}
	return r, nil
}

// http reads requests of HTTP, and the events of those to an intake of APM.
func (c *conversation) http(time int64) error {
	for len(c.buffer) > 0 {
		end := bytes.Index(c.buffer, []byte("\r\n\r\n"))
		if end < 0 {
			if len(c.buffer) > maxHead {
				return errors.New("the head of a request is too long")
			}
			return nil
		}
		if !isHTTP(c.buffer) {
			return errors.New("it is not a request of HTTP")
		}
		r, err := parseHead(c.buffer[:end])
		if err != nil {
			return err
		}
		body, size, err := bodyOf(c.buffer[end+4:], r.length, &c.chunks)
		if err != nil {
			return err
		}
		if size < 0 {
			return nil // there is more to come
		}
		if protocol, ok := intake(r.path); ok {
			c.count(&c.p.APMConns)
			if err := c.p.intake(protocol, &r, body, time); err != nil {
				return err
			}
		}
		c.take(end + 4 + size)
		c.chunks = 0
	}
	return nil
}

// maxChunkHead limits the line before a chunk.
const maxChunkHead = 4 << 10

// bodyOf returns the body at the beginning of b, and how many bytes it takes; -1 if it is not
// complete. done is how much of b has complete chunks: the search goes on there when there is more.
func bodyOf(b []byte, length int, done *int) (body []byte, size int, err error) {
	if length >= 0 {
		if len(b) < length {
			return nil, -1, nil
		}
		return b[:length], length, nil
	}
	for {
		data, size, err := chunkOf(b[*done:])
		if err != nil || size < 0 {
			return nil, size, err
		}
		*done += size
		if len(data) == 0 { // trailers are not used by agents
			break
		}
	}
	for rest := b[:*done]; len(rest) > 0; {
		data, size, err := chunkOf(rest)
		if err != nil {
			return nil, 0, err
		}
		body, rest = append(body, data...), rest[size:]
	}
	return body, *done, nil
}

// chunkOf returns the data of the chunk at the beginning of b, and how many bytes the chunk takes;
// -1 if it is not complete.
func chunkOf(b []byte) (data []byte, size int, err error) {
	errLength := errors.New("a chunk has no valid length")
	end := bytes.Index(b[:min(len(b), maxChunkHead)], []byte("\r\n"))
	if end < 0 {
		if len(b) >= maxChunkHead {
			return nil, 0, errLength
		}
		return nil, -1, nil
	}
	text, _, _ := bytes.Cut(b[:end], []byte(";"))
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 16, 31)
	if err != nil || n > maxMessage {
		return nil, 0, errLength
	}
	if b = b[end+2:]; len(b) < int(n)+2 {
		return nil, -1, nil
	}
	return b[:n], end + 2 + int(n) + 2, nil
}

// intake returns the protocol of a path.
func intake(path string) (apm.Protocol, bool) {
	for _, p := range []apm.Protocol{apm.IntakeV2, apm.RUMV2, apm.RUMV3} {
		if strings.HasSuffix(path, p.Path(false)) {
			return p, true
		}
	}
	return 0, false
}

// intake reads the events of a body.
func (p *Packets) intake(protocol apm.Protocol, head *request, body []byte, time int64) error {
	plain, err := inflated(body, head.encoding)
	if err != nil {
		p.Unreadable++
		return nil //nolint:nilerr // the next request may be readable
	}
	err = APM(bufio.NewReader(bytes.NewReader(plain)), func(r *APMRequest, lines []byte) error {
		r.Protocol, r.Time, r.Wire, r.Packed = protocol, time, len(body), head.encoding != "" && head.encoding != "identity"
		return p.APM(r, lines)
	})
	if _, ok := errors.AsType[*Error](err); ok {
		p.Unreadable++
		return nil
	}
	return err
}

// inflated decompresses a body.
func inflated(body []byte, encoding string) ([]byte, error) {
	var in io.Reader
	var err error
	switch encoding {
	case "", "identity":
		return body, nil
	case "gzip":
		in, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		// RFC 9110 means the zlib format; some clients send what is inside it.
		if in, err = zlib.NewReader(bytes.NewReader(body)); err != nil {
			in, err = flate.NewReader(bytes.NewReader(body)), nil
		}
	default:
		err = fmt.Errorf("the encoding %q is not known", encoding)
	}
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(in, maxRequest+1))
	if err == nil && len(plain) > maxRequest {
		err = errors.New("the body is too large")
	}
	return plain, err
}
