package standin

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"carronade/internal/riemann/wire"
	"carronade/internal/standin"
)

const (
	// windowSize is the size of a connection's window, in bytes. It grows while
	// the connection sends longer messages.
	windowSize = 64 << 10

	// flushAt is how many bytes of answers may accumulate before they are written
	// even if more messages are waiting in the window.
	flushAt = 64 << 10
)

// A conn serves one connection on one goroutine and answers its messages in order.
// Answers accumulate and are written when the window contains no more complete
// message, so pipelined messages are answered by one write.
type conn struct {
	handler
	nc    net.Conn
	meter *meter
	rec   *standin.RecordedConn // nil: nothing is recorded

	buf  []byte
	r, w int
	out  []byte
}

func newConn(c *core, nc net.Conn, m *meter, size int) *conn {
	return &conn{handler: c.newHandler(nc), nc: nc, meter: m, rec: standin.RecordedConnOf(nc), buf: make([]byte, size)}
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
		c.makeRoom()
	}
}

// serveWindow answers all complete messages in the window. It writes the answers
// before an error ends the connection.
func (c *conn) serveWindow() error {
	now := time.Now()
	messages := 0
	bad := error(nil)
	for bad == nil {
		msg, rest, err := wire.NextFrame(c.buf[c.r:c.w], int(c.opts.MaxMessage))
		if err != nil {
			bad = badFrame(err)
			break
		}
		if rest == nil {
			break
		}
		m, err := wire.DecodeMsg(msg)
		if err != nil {
			bad = err // the real server closes the connection too
			break
		}
		c.r = c.w - len(rest)
		c.tally.messages.Add(1)
		c.tally.bytes.Add(uint64(wire.FrameHead + len(msg)))
		c.out = c.answer(c.out, &m, now)
		recordMessage(c.rec, len(m.Events))
		messages++
		// With a server, each answer leaves at its own time.
		if len(c.out) >= flushAt || c.departures != nil {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
	err := c.flush()
	if messages > 0 {
		c.meter.record(messages, time.Since(now))
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
	c.out = emptied(c.out)
	return err
}

// emptied is the memory of answers that were written, for the next ones; that of large ones
// is not kept.
func emptied(out []byte) []byte {
	if cap(out) > 1<<20 {
		return nil
	}
	return out[:0]
}

// badFrame is the error of a connection with a frame that is not one.
func badFrame(err error) error {
	return fmt.Errorf("%w; does the client speak Riemann's protocol, without TLS?", err)
}

// recordMessage records a message; events is standin.NoRecord if its events are not
// read.
func recordMessage(c *standin.RecordedConn, events int) {
	c.Received(standin.RecordedRequest{Kind: "message", Partition: standin.NoRecord, Offset: standin.NoRecord, Events: int64(events)})
}

// makeRoom makes room to read into: it moves the remaining bytes to the front,
// doubles a full window (so that memory depends on the bytes received, not on a
// claimed length), and shrinks a large window that is empty.
func (c *conn) makeRoom() {
	if c.r == c.w {
		c.r, c.w = 0, 0
		if len(c.buf) > windowSize {
			c.buf = make([]byte, windowSize)
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
