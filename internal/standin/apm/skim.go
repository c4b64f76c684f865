package apm

import (
	"bytes"
	"errors"
	"io"

	"carronade/internal/standin/record"
	wire "carronade/internal/wire/apm"
)

// A skimmer reads over one connection's requests, in whatever pieces they come,
// and makes the answers. It reads no more of a request than how long it is, and
// knows nothing of connections: whoever has one feeds it.
type skimmer struct {
	d *discard
	c *discardConn

	at   skimming
	part []byte // of a head or a line that is not complete
	left int64  // bytes until what is being read over ends
	size int64  // of the body so far
	q    request
	out  []byte       // answers to be written, by whoever feeds
	over bool         // nothing is read after this
	rec  *record.Conn // nil: nothing is recorded
}

// What a skimmer is in.
type skimming uint8

const (
	inHead skimming = iota
	inBody
	inChunk // and the end of line behind it
	inSize  // the line before a chunk
	inTrailer
)

// take reads over bytes that came. After an error nothing more is read; what is
// in out is still to be written.
func (k *skimmer) take(p []byte) error {
	for len(p) > 0 && !k.over {
		var err error
		switch k.at {
		case inHead:
			p, err = k.head(p)
		case inBody, inChunk:
			n := min(k.left, int64(len(p)))
			p = p[n:]
			k.skip(n)
		default:
			p, err = k.line(p)
		}
		if err != nil {
			k.over = true
			return err
		}
	}
	return nil
}

// skippable is how many bytes follow that need not be looked at.
func (k *skimmer) skippable() int64 {
	if k.over || k.at != inBody && k.at != inChunk {
		return 0
	}
	return k.left
}

// skip notes that so many of them are gone.
func (k *skimmer) skip(n int64) {
	if k.left -= n; k.left > 0 {
		return
	}
	if k.at == inBody {
		k.answer()
	} else {
		k.at = inSize
	}
}

// end is what it means that the connection ends here.
func (k *skimmer) end() error {
	if k.over || k.at == inHead && len(k.part) == 0 {
		return io.EOF
	}
	return io.ErrUnexpectedEOF
}

// until takes what ends with a mark: together with what came of it before.
func (k *skimmer) until(p, mark []byte) (whole, rest []byte, err error) {
	if len(k.part) == 0 { // as a rule
		if i := bytes.Index(p[:min(len(p), maxRequest)], mark); i >= 0 {
			return p[:i+len(mark)], p[i+len(mark):], nil
		}
	}
	had := len(k.part)
	from := max(0, had-len(mark)+1)
	k.part = append(k.part, p[:min(len(p), maxRequest-had)]...)
	if i := bytes.Index(k.part[from:], mark); i >= 0 {
		end := from + i + len(mark)
		whole, k.part = k.part[:end], k.part[:0]
		return whole, p[end-had:], nil
	}
	if len(k.part) == maxRequest {
		return nil, nil, errors.New("the head of a request is too long")
	}
	return nil, nil, nil
}

// head reads a request's.
func (k *skimmer) head(p []byte) (rest []byte, err error) {
	h, rest, err := k.until(p, headEnd)
	if h == nil {
		return nil, err
	}
	if k.q, err = parseHead(h); err != nil {
		k.out = append(k.out, answer400...)
		return nil, err
	}
	if k.q.expects {
		k.out = append(k.out, answer100...)
	}
	k.size, k.left = k.q.length, k.q.length
	switch {
	case k.q.chunked:
		k.at, k.size = inSize, 0
	case k.left > 0:
		k.at = inBody
	default:
		k.answer()
	}
	return rest, nil
}

// line reads the line before a chunk, or one behind the last.
func (k *skimmer) line(p []byte) (rest []byte, err error) {
	line, rest, err := k.until(p, lineEnd)
	if line == nil {
		return nil, err
	}
	line = bytes.TrimRight(line, "\r\n")
	if k.at == inTrailer {
		if len(line) == 0 {
			k.answer()
		}
		return rest, nil
	}
	n, err := wire.ChunkSize(line)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		k.at = inTrailer
	default:
		k.at, k.left = inChunk, n+2
		k.size += n
	}
	return rest, nil
}

// answer answers the request that is whole.
func (k *skimmer) answer() {
	k.at = inHead
	if k.q.get {
		k.out = append(k.out, k.d.counters()...)
	} else {
		k.c.requests.Add(1)
		k.c.bytes.Add(uint64(k.size))
		k.out = append(k.out, answer202...)
		k.rec.Took(record.Request{Kind: "request", Partition: record.None, Offset: record.None, Events: record.None})
	}
	k.over = k.q.close
}

var (
	answer202 = []byte("HTTP/1.1 202 Accepted\r\nX-Content-Type-Options: nosniff\r\nContent-Length: 0\r\n\r\n")
	answer100 = []byte("HTTP/1.1 100 Continue\r\n\r\n")
	answer400 = []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	headEnd   = []byte("\r\n\r\n")
	lineEnd   = []byte("\n")
)

// maxRequest bounds a request's head, and a line between chunks, in bytes.
const maxRequest = 32 << 10
