package standin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/standin"
)

// maxFrame is the largest request accepted, in bytes: Kafka's
// socket.request.max.bytes.
const maxFrame = 100 << 20

// flushAt is how many bytes of answers may accumulate before they are written even
// if more requests are waiting in the window.
const flushAt = 64 << 10

// A conn serves one client connection on one goroutine. It answers requests in
// order, one at a time, as Kafka does. Answers accumulate in out and are written
// when no more can be read without blocking, so pipelined requests are answered
// by one write.
type conn struct {
	front      *front
	nc         net.Conn
	rec        *standin.RecordedConn // nil: nothing is recorded
	departures *standin.Departures   // nil: answers leave at once
	in         *stream
	tally      tally
	body       []byte // a complete frame
	inner      io.ReadWriteCloser

	out      []byte
	segments []segment
	vec      net.Buffers

	answer produceAnswer
	fetch  fetchScratch
}

// A segment says that data follows out[:end] without being copied into out:
// record batches of a fetch.
type segment struct {
	end  int
	data []byte
}

func newConn(f *front, nc net.Conn) *conn {
	c := &conn{front: f, nc: nc, rec: standin.RecordedConnOf(nc)}
	if f.server != nil {
		c.departures = standin.DeparturesOf(nc)
	}
	c.in = newStream(newSource(c, nc))
	c.answer.conn = c
	return c
}

func (c *conn) serve() error {
	defer func() {
		if c.inner != nil {
			c.inner.Close()
		}
	}()
	for {
		if err := c.serveFrame(); err != nil {
			if e := c.flush(); e != nil && errors.Is(err, io.EOF) {
				err = e
			}
			return err
		}
		// With a server, each answer leaves at its own time.
		if len(c.out) >= flushAt || len(c.segments) > 0 || c.departures != nil {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
}

// A requestHead is the part of a request's header that all versions have in
// common.
type requestHead struct {
	size        int
	key         int16
	version     int16
	correlation int32
}

func (c *conn) serveFrame() error {
	s := c.in
	s.frame(4)
	size, err := s.int32()
	if err != nil {
		return err
	}
	if size < 10 || size > maxFrame {
		return fmt.Errorf("%w: a frame of %d bytes; does the client speak Kafka's protocol, without TLS?", errFrame, uint32(size))
	}
	s.frame(int(size))
	b, err := s.next(8)
	if err != nil {
		return unexpectedEOF(err)
	}
	h := requestHead{
		size:        int(size),
		key:         int16(binary.BigEndian.Uint16(b)),
		version:     int16(binary.BigEndian.Uint16(b[2:])),
		correlation: int32(binary.BigEndian.Uint32(b[4:])),
	}
	c.tally.requests.Add(1)
	if h.key == 0 {
		if h.version < 3 || h.version > 13 {
			return fmt.Errorf("%w: produce version %d; 3 to 13 are supported", errFrame, h.version)
		}
		if c.front.log != nil {
			return unexpectedEOF(c.serveProduce(h))
		}
	}
	if err := c.readBody(h); err != nil {
		return unexpectedEOF(err)
	}
	return c.serveBody(h)
}

// unexpectedEOF turns an EOF inside a frame into io.ErrUnexpectedEOF.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readBody reads the rest of the frame after its head. c.body then contains the
// frame, beginning with its length.
func (c *conn) readBody(h requestHead) error {
	need := 4 + h.size
	if cap(c.body) < need {
		c.body = make([]byte, need)
	}
	c.body = c.body[:need]
	binary.BigEndian.PutUint32(c.body, uint32(h.size))
	binary.BigEndian.PutUint16(c.body[4:], uint16(h.key))
	binary.BigEndian.PutUint16(c.body[6:], uint16(h.version))
	binary.BigEndian.PutUint32(c.body[8:], uint32(h.correlation))
	rest := c.body[12:]
	s := c.in
	n := copy(rest, s.buf[s.r:s.w])
	s.r += n
	for n < len(rest) {
		m, err := s.src.read(rest[n:])
		n += m
		if err != nil {
			return err
		}
	}
	s.left = 0
	return nil
}

// serveBody answers the request in c.body.
func (c *conn) serveBody(h requestHead) error {
	req := kmsg.RequestForKey(h.key)
	if req == nil {
		return fmt.Errorf("%w: no request has key %d", errFrame, h.key)
	}
	// The header is checked here, because kmsg loops over as many tagged fields
	// as a header claims, for minutes, even if they do not exist.
	if _, err := c.skipHead(h, req); err != nil {
		return err
	}
	if log := c.front.log; log != nil {
		switch {
		case h.key == 1 && h.version >= 4 && h.version <= 18:
			return c.serveFetch(h)
		case h.key == 2 && h.version >= 0 && h.version <= 10:
			return c.serveListOffsets(h)
		case h.key == 23 && h.version >= 3 && h.version <= 4:
			return c.serveEpochEnds(h)
		}
	} else if h.key == 0 {
		return c.serveBrokerProduce(h)
	}
	// The broker may delay the answer to a fetch or to a member of a group. The
	// answers that are ready must not wait with it.
	if err := c.flush(); err != nil {
		return err
	}
	answer, err := c.forward(c.body)
	if err == nil && h.key == 3 {
		answer, err = c.createMissing(h, answer)
	}
	if err != nil {
		return err
	}
	c.out = append(c.out, answer...)
	if c.rec != nil && h.key == 1 {
		if err := c.recordFetch(h, answer); err != nil {
			return err
		}
	}
	if log := c.front.log; log != nil {
		return log.answered(h.key)
	}
	return nil
}

// forward passes a frame to the broker and returns the answer, a frame too. A
// Kafka broker processes one request of a connection at a time, so no other answer
// can arrive.
func (c *conn) forward(frame []byte) ([]byte, error) {
	if err := c.dialInner(); err != nil {
		return nil, err
	}
	return exchange(c.inner, frame)
}

// sendUnanswered passes a frame to the broker that the broker does not answer.
func (c *conn) sendUnanswered(frame []byte) error {
	if err := c.dialInner(); err != nil {
		return err
	}
	_, err := c.inner.Write(frame)
	return err
}

func (c *conn) dialInner() error {
	if c.inner != nil {
		return nil
	}
	inner, err := c.front.broker.dial(c.nc.RemoteAddr())
	if err != nil {
		return err
	}
	c.inner = inner
	return nil
}

// decode reads the request in c.body into req.
func (c *conn) decode(h requestHead, req kmsg.Request) error {
	st, err := c.skipHead(h, req)
	if err != nil {
		return err
	}
	if err := req.ReadFrom(st.buf[st.r:]); err != nil {
		return fmt.Errorf("%w: %s version %d: %w", errFrame, kmsg.NameForKey(h.key), h.version, err)
	}
	return nil
}

// skipHead gives req its version, and returns the request in c.body without its header.
func (c *conn) skipHead(h requestHead, req kmsg.Request) (stream, error) {
	req.SetVersion(h.version)
	st := frameStream(c.body)
	if _, err := st.next(12); err != nil {
		return st, err
	}
	err := skipClient(&st, req.IsFlexible())
	return st, err
}

// skipClient skips the client id and, in flexible versions, the header's tags.
func skipClient(s *stream, flexible bool) error {
	n, err := s.length(false, false)
	if err != nil {
		return err
	}
	if err := s.skip(max(n, 0)); err != nil {
		return err
	}
	if flexible {
		return s.tags()
	}
	return nil
}

// reply appends an answer to the request h.
func (c *conn) reply(h requestHead, resp kmsg.Response) {
	at := c.beginReply(h, resp.IsFlexible())
	c.out = resp.AppendTo(c.out)
	c.endReply(at, 0)
}

// beginReply appends the head of an answer and returns where it begins. Nothing
// may be read from the connection until endReply, because reading may write out.
func (c *conn) beginReply(h requestHead, flexible bool) int {
	at := len(c.out)
	c.out = appendReplyHead(c.out, h, flexible)
	return at
}

func appendReplyHead(out []byte, h requestHead, flexible bool) []byte {
	out = append(out, 0, 0, 0, 0)
	out = binary.BigEndian.AppendUint32(out, uint32(h.correlation))
	if flexible {
		out = append(out, 0) // no tagged fields
	}
	return out
}

// endReply sets the length of the answer that begins at at; extra is the number
// of its bytes in segments.
func (c *conn) endReply(at, extra int) {
	binary.BigEndian.PutUint32(c.out[at:], uint32(len(c.out)-at-4+extra))
}

// flush writes the accumulated answers.
func (c *conn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	var err error
	if len(c.segments) == 0 {
		_, err = c.nc.Write(c.out)
	} else {
		vec := c.vec[:0]
		from := 0
		for _, s := range c.segments {
			vec = append(vec, c.out[from:s.end], s.data)
			from = s.end
		}
		if from < len(c.out) {
			vec = append(vec, c.out[from:])
		}
		c.vec = vec // WriteTo consumes its receiver; this keeps the array
		_, err = vec.WriteTo(c.nc)
	}
	c.out, c.segments = c.out[:0], c.segments[:0]
	c.rec.Answered()
	return err
}

// plainSource reads a connection by its method Read, where a rawSource is not
// used: under TLS, with injected faults, for the broker, and outside Linux.
type plainSource struct {
	conn    *conn
	nc      net.Conn
	scratch []byte
}

func (s *plainSource) read(p []byte) (int, error) {
	if err := s.conn.flush(); err != nil {
		return 0, err
	}
	return s.nc.Read(p)
}

func (s *plainSource) discard(n int) (int, error) {
	if s.scratch == nil {
		s.scratch = make([]byte, 256<<10)
	}
	return s.read(s.scratch[:min(n, len(s.scratch))])
}
