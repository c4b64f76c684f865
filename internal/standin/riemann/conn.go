package riemann

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"carronade/internal/standin/record"
	wire "carronade/internal/wire/riemann"
)

const (
	// window is what is read at once; a connection that sends longer messages
	// gets a larger one, for as long as it does.
	window = 64 << 10

	// flushAt is how many bytes of answers may collect before they are written
	// although more messages are waiting in the window.
	flushAt = 64 << 10
)

// A conn serves one connection on one goroutine: messages are taken and
// answered in order. Answers collect and are written when nothing whole is left
// in the window, so messages that were pipelined are answered by one write.
type conn struct {
	taker
	nc    net.Conn
	meter *meter
	rec   *record.Conn // nil: nothing is recorded

	buf  []byte
	r, w int
	out  []byte
}

func newConn(c *core, nc net.Conn, m *meter, size int) *conn {
	return &conn{taker: taker{core: c}, nc: nc, meter: m, rec: record.Of(nc), buf: make([]byte, size)}
}

func (c *conn) serve() error {
	for {
		n, err := c.nc.Read(c.buf[c.w:])
		c.w += n
		if n > 0 {
			if err := c.serveWindow(); err != nil {
				return err
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) && c.r < c.w {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		c.room(window)
	}
}

// serveWindow answers all whole messages in the window. What can be answered
// is answered before an error ends the connection.
func (c *conn) serveWindow() error {
	now := time.Now()
	messages := 0
	bad := error(nil)
	for bad == nil {
		msg, rest, err := wire.NextFrame(c.buf[c.r:c.w], int(c.opts.MaxMessage))
		if err != nil {
			bad = fmt.Errorf("%w; does the client speak Riemann's protocol, without TLS?", err)
			break
		}
		if rest == nil {
			break
		}
		m, err := wire.DecodeMsg(msg)
		if err != nil {
			bad = err // the real server closes the connection, too
			break
		}
		c.r = c.w - len(rest)
		c.tally.messages.Add(1)
		c.tally.bytes.Add(uint64(wire.FrameHead + len(msg)))
		c.out = c.answer(c.out, &m, now)
		c.took(len(m.Events))
		messages++
		if len(c.out) >= flushAt {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
	err := c.flush()
	if messages > 0 {
		c.meter.took(messages, time.Since(now))
	}
	if bad != nil {
		return bad
	}
	return err
}

func (c *conn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.nc.Write(c.out)
	c.rec.Answered()
	if c.out = c.out[:0]; cap(c.out) > 1<<20 {
		c.out = nil // the answer to a large query
	}
	return err
}

// took records a message; of how many events nobody knows where they are not
// looked at.
func (c *conn) took(events int) {
	c.rec.Took(record.Request{Kind: "message", Partition: record.None, Offset: record.None, Events: int64(events)})
}

// room makes room to read into: it moves what is left to the front, doubles a
// full window - so that memory follows what arrived, not what a length claims -
// and gives a large one back when it is empty.
func (c *conn) room(size int) {
	if c.r == c.w {
		c.r, c.w = 0, 0
		if len(c.buf) > size {
			c.buf = make([]byte, size)
		}
		return
	}
	if c.r > 0 {
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	if c.w == len(c.buf) {
		c.buf = append(c.buf, make([]byte, len(c.buf))...)
	}
}
