package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/standin/record"
)

// maxFrame is the largest request taken: Kafka's socket.request.max.bytes.
const maxFrame = 100 << 20

// flushAt is how many bytes of answers may collect before they are written
// although more requests are waiting in the window.
const flushAt = 64 << 10

// A conn serves one client connection on one goroutine. Requests are answered
// in order, one at a time, as Kafka answers them. Answers collect in out and are
// written when nothing more can be read without waiting: requests that were
// pipelined are answered by one write.
type conn struct {
	front *front
	nc    net.Conn
	rec   *record.Conn // nil: nothing is recorded
	in    *stream
	tally tally
	body  []byte // a frame read whole
	inner io.ReadWriteCloser

	out  []byte
	segs []segment
	vec  net.Buffers

	answer produceAnswer
	fetch  fetchScratch
}

// A segment says that bytes follow out[:end] which are not copied into out:
// record batches of a fetch.
type segment struct {
	end  int
	data []byte
}

func newConn(f *front, nc net.Conn) *conn {
	c := &conn{front: f, nc: nc, rec: record.Of(nc)}
	c.in = newStream(newSource(c, nc))
	c.answer.conn = c
	return c
}

func (c *conn) close() {
	c.nc.Close()
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
		if len(c.out) >= flushAt || len(c.segs) > 0 {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
}

// A head is the part of a request's header that all versions share.
type head struct {
	size    int
	key     int16
	version int16
	corr    int32
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
		return noEOF(err)
	}
	h := head{
		size:    int(size),
		key:     int16(binary.BigEndian.Uint16(b)),
		version: int16(binary.BigEndian.Uint16(b[2:])),
		corr:    int32(binary.BigEndian.Uint32(b[4:])),
	}
	c.tally.requests.Add(1)
	if h.key == 0 {
		if h.version < 3 || h.version > 13 {
			return fmt.Errorf("%w: produce version %d; 3 to 13 are supported", errFrame, h.version)
		}
		if c.front.log != nil {
			return noEOF(c.serveProduce(h))
		}
	}
	if err := c.readBody(h); err != nil {
		return noEOF(err)
	}
	return c.serveBody(h)
}

// noEOF turns the end of the connection inside a frame into what it is.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readBody reads the rest of the frame behind what the head took. c.body holds
// the frame from its length on, as it came.
func (c *conn) readBody(h head) error {
	need := 4 + h.size
	if cap(c.body) < need {
		c.body = make([]byte, need)
	}
	c.body = c.body[:need]
	binary.BigEndian.PutUint32(c.body, uint32(h.size))
	binary.BigEndian.PutUint16(c.body[4:], uint16(h.key))
	binary.BigEndian.PutUint16(c.body[6:], uint16(h.version))
	binary.BigEndian.PutUint32(c.body[8:], uint32(h.corr))
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

// serveBody answers a request that lies in c.body.
func (c *conn) serveBody(h head) error {
	req := kmsg.RequestForKey(h.key)
	if req == nil {
		return fmt.Errorf("%w: no request has key %d", errFrame, h.key)
	}
	// The header is checked here, since kmsg counts on through as many tagged
	// fields as a header says there are, for minutes, whether they are there.
	req.SetVersion(h.version)
	st := frameStream(c.body)
	if _, err := st.next(12); err != nil {
		return err
	}
	if err := skipClient(&st, req.IsFlexible()); err != nil {
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
	// The broker may keep a fetch or a member of a group waiting: what is
	// answered already must not wait with it.
	if err := c.flush(); err != nil {
		return err
	}
	answer, err := c.forward(c.body)
	if err != nil {
		return err
	}
	c.out = append(c.out, answer...)
	if c.rec != nil && h.key == 1 {
		if err := c.recordFetch(h, answer); err != nil {
			return err
		}
	}
	if log := c.front.log; log != nil && changesTopics(h.key) {
		return log.refresh()
	}
	return nil
}

// changesTopics tells requests after which the discarding log must learn anew
// which topics exist.
func changesTopics(key int16) bool {
	return key == 19 || key == 20 || key == 37 // create and delete topics, create partitions
}

// forward hands a frame to the broker behind and returns its answer, a frame
// too. Kafka's protocol allows one request at a time per connection inside the
// broker, so there is never another answer on the way.
func (c *conn) forward(frame []byte) ([]byte, error) {
	if err := c.dialInner(); err != nil {
		return nil, err
	}
	return exchange(c.inner, frame)
}

// passOn hands a frame to the broker behind that is not answered.
func (c *conn) passOn(frame []byte) error {
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

// decode reads the request in c.body into req and returns it ready to answer.
func (c *conn) decode(h head, req kmsg.Request) error {
	req.SetVersion(h.version)
	st := frameStream(c.body)
	if _, err := st.next(12); err != nil {
		return err
	}
	if err := skipClient(&st, req.IsFlexible()); err != nil {
		return err
	}
	if err := req.ReadFrom(st.buf[st.r:]); err != nil {
		return fmt.Errorf("%w: %s version %d: %w", errFrame, kmsg.NameForKey(h.key), h.version, err)
	}
	return nil
}

// skipClient drops the client id and, in flexible versions, the header's tags.
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
func (c *conn) reply(h head, resp kmsg.Response) {
	at := c.beginReply(h, resp.IsFlexible())
	c.out = resp.AppendTo(c.out)
	c.endReply(at, 0)
}

// beginReply appends the head of an answer and returns where it began. Nothing
// may be read from the connection until endReply: reading may write what has
// collected.
func (c *conn) beginReply(h head, flexible bool) int {
	at := len(c.out)
	c.out = appendReplyHead(c.out, h, flexible)
	return at
}

func appendReplyHead(out []byte, h head, flexible bool) []byte {
	out = append(out, 0, 0, 0, 0)
	out = binary.BigEndian.AppendUint32(out, uint32(h.corr))
	if flexible {
		out = append(out, 0) // no tagged fields
	}
	return out
}

// endReply writes the length of the answer begun at at; extra bytes of it lie
// in segments.
func (c *conn) endReply(at, extra int) {
	binary.BigEndian.PutUint32(c.out[at:], uint32(len(c.out)-at-4+extra))
}

// flush writes the answers that were collected.
func (c *conn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	var err error
	if len(c.segs) == 0 {
		_, err = c.nc.Write(c.out)
	} else {
		vec := c.vec[:0]
		from := 0
		for _, s := range c.segs {
			vec = append(vec, c.out[from:s.end], s.data)
			from = s.end
		}
		if from < len(c.out) {
			vec = append(vec, c.out[from:])
		}
		c.vec = vec // WriteTo eats its receiver; the array is kept here
		_, err = vec.WriteTo(c.nc)
	}
	c.out, c.segs = c.out[:0], c.segs[:0]
	c.rec.Answered()
	return err
}

// plainSource reads a connection through its Read, where there is no cheaper
// way: under TLS, with injected faults, and where the kernel cannot discard.
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
