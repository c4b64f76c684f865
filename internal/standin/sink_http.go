package standin

import (
	"bytes"
	"errors"
	"io"

	"carronade/internal/conn/framing"
)

// A sinkSkimmer is a Skimmer that reads nothing of a request but its length.
type sinkSkimmer struct {
	d      *Sink
	counts *sinkTally

	state    skimState
	part     []byte // of a head or a line that is not complete
	left     int64  // bytes until the end of the body or chunk
	bodySize int64  // of the body so far
	q        request
	out      []byte        // answers to write
	over     bool          // the last request said that the connection ends
	rec      *RecordedConn // nil: nothing is recorded
	frames   *frameSkimmer // of HTTP/2; nil: the connection has HTTP/1.1
}

// skimState says which part of a request comes next.
type skimState uint8

const (
	inHead skimState = iota
	inBody
	inChunk // with the end of line after it
	inSize  // the line before a chunk
	inTrailer
	inFrames // of HTTP/2
)

// Take processes received bytes, always all of them.
func (k *sinkSkimmer) Take(p []byte) (int, error) {
	had := len(p)
	for len(p) > 0 && !k.over {
		var err error
		switch k.state {
		case inFrames:
			return had, k.frames.take(p)
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
			return had, err
		}
	}
	return had, k.atEnd()
}

// atEnd is the end of a connection after its last request.
func (k *sinkSkimmer) atEnd() error {
	if k.over {
		return io.EOF
	}
	return nil
}

// Skippable is what is left of a body or chunk.
func (k *sinkSkimmer) Skippable() int64 {
	if k.state == inFrames {
		return k.frames.skippable()
	}
	if k.state != inBody && k.state != inChunk {
		return 0
	}
	return k.left
}

// Skip notes that n of its bytes were skipped.
func (k *sinkSkimmer) Skip(n int64) error {
	if k.state == inFrames {
		return k.frames.skip(int(n))
	}
	k.skip(n)
	return k.atEnd()
}

func (k *sinkSkimmer) skip(n int64) {
	if k.left -= n; k.left > 0 {
		return
	}
	if k.state == inBody {
		k.answer()
	} else {
		k.state = inSize
	}
}

// End is the error of a connection that ends here.
func (k *sinkSkimmer) End() error {
	if k.state == inHead && len(k.part) == 0 || k.state == inFrames && k.frames.between() {
		return io.EOF
	}
	return io.ErrUnexpectedEOF
}

// Answers returns the answers to what was taken.
func (k *sinkSkimmer) Answers() []byte {
	p := k.out
	k.out = k.out[:0]
	return p
}

// readUntil returns everything up to and including a mark, with the part that
// arrived before; whole is nil while the mark is missing.
func (k *sinkSkimmer) readUntil(p, mark []byte) (whole, rest []byte, err error) {
	if len(k.part) == 0 { // the usual case
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

// head reads the head of a request.
func (k *sinkSkimmer) head(p []byte) (rest []byte, err error) {
	h, rest, err := k.readUntil(p, headEnd)
	if h == nil {
		return nil, err
	}
	if k.d.calls != nil && k.rec == nil && bytes.Equal(h, framing.PrefaceHead) { // a record follows only one answer at a time
		k.state, k.frames = inFrames, newFrameSkimmer(k)
		return rest, nil
	}
	if k.q, err = parseHead(h); err != nil {
		k.out = append(k.out, answer400...)
		return nil, err
	}
	if k.q.expects {
		k.out = append(k.out, answer100...)
	}
	k.bodySize, k.left = k.q.length, k.q.length
	switch {
	case k.q.chunked:
		k.state, k.bodySize = inSize, 0
	case k.left > 0:
		k.state = inBody
	default:
		k.answer()
	}
	return rest, nil
}

// line reads the line before a chunk, or a line after the last chunk.
func (k *sinkSkimmer) line(p []byte) (rest []byte, err error) {
	line, rest, err := k.readUntil(p, lineEnd)
	if line == nil {
		return nil, err
	}
	line = bytes.TrimRight(line, "\r\n")
	if k.state == inTrailer {
		if len(line) == 0 {
			k.answer()
		}
		return rest, nil
	}
	n, err := framing.ChunkSize(line)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		k.state = inTrailer
	default:
		k.state, k.left = inChunk, n+2
		k.bodySize += n
	}
	return rest, nil
}

// answer answers the request, which is complete.
func (k *sinkSkimmer) answer() {
	k.state = inHead
	if k.q.get {
		k.out = append(k.out, k.d.counters()...)
	} else {
		k.counts.requests.Add(1)
		k.counts.bytes.Add(uint64(k.bodySize))
		k.out = append(k.out, k.d.opts.Answer...)
		k.rec.Received(RecordedRequest{Kind: "request", Partition: NoRecord, Offset: NoRecord, Events: NoRecord})
	}
	k.over = k.q.close
}

var (
	answer100 = []byte("HTTP/1.1 100 Continue\r\n\r\n")
	answer400 = []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	headEnd   = []byte("\r\n\r\n")
	lineEnd   = []byte("\n")
)

// maxRequest is the largest size of a request's head and of a line between
// chunks, in bytes.
const maxRequest = 32 << 10
