package riemann

import (
	"errors"
	"fmt"
	"io"
	"time"

	"carronade/internal/standin/record"
	wire "carronade/internal/wire/riemann"
)

// sinkWindow is what the discarding server reads at once: reads and writes are
// what it spends its time on, so they are large.
const sinkWindow = 512 << 10

// queryTag is what a message with nothing but a query begins with: field 5, of
// bytes.
const queryTag = 5<<3 | 2

// ackRun are the acks for as many messages as fit into a window: prepared once,
// and written from.
var ackRun = wire.AppendAcks(nil, sinkWindow/wire.FrameHead)

// sink serves a connection that keeps nothing: it counts frames by their
// lengths and answers with as many acks. A query is told by its first byte and
// answered, so that the server can be asked what it is. It allocates nothing on
// the way.
func (c *conn) sink() error {
	for {
		n, err := c.nc.Read(c.buf[c.w:])
		c.w += n
		if n > 0 {
			if err := c.sinkWindow(); err != nil {
				return err
			}
		}
		if err != nil {
			if err == io.EOF && c.r < c.w { //nolint:errorlint // Read's own, never wrapped
				return io.ErrUnexpectedEOF
			}
			return err
		}
		c.room(sinkWindow)
	}
}

func (c *conn) sinkWindow() error {
	now := time.Now()
	most := int(c.opts.MaxMessage)
	for {
		frames, size := 0, 0
		if len(c.opts.Errors) == 0 {
			frames, size = wire.WalkFrames(c.buf[c.r:c.w], most)
		}
		if frames > 0 {
			if err := c.flush(); err != nil { // what is to be answered before
				return err
			}
			c.r += size
			c.tally.messages.Add(uint64(frames))
			c.tally.bytes.Add(uint64(size))
			for range frames {
				c.took(record.None)
			}
			for left := frames * wire.AckSize; left > 0; {
				n, err := c.nc.Write(ackRun[:min(left, len(ackRun))])
				if err != nil {
					return err
				}
				left -= n
			}
			c.rec.Answered()
			c.meter.took(frames, time.Since(now))
		}
		msg, rest, err := wire.NextFrame(c.buf[c.r:c.w], most)
		if err != nil {
			return errors.Join(fmt.Errorf("%w; does the client speak Riemann's protocol, without TLS?", err), c.flush())
		}
		if rest == nil {
			return c.flush()
		}
		if err := c.sinkOne(msg, now); err != nil {
			return errors.Join(err, c.flush())
		}
		c.r = c.w - len(rest)
	}
}

// sinkOne answers a query, or a message that an error may be drawn for.
func (c *conn) sinkOne(msg []byte, now time.Time) error {
	if len(msg) > 0 && msg[0] == queryTag {
		m, err := wire.DecodeMsg(msg)
		if err != nil {
			return err
		}
		c.out = c.find(c.out, m.Query, now)
		c.took(0)
	} else if i := c.dice.Draw(); i >= 0 {
		c.tally.refused.Add(1)
		c.out = appendError(c.out, c.opts.Errors[i].Name)
		c.took(record.None)
	} else {
		c.out = append(c.out, wire.Ack...)
		c.took(record.None)
	}
	c.tally.messages.Add(1)
	c.tally.bytes.Add(uint64(wire.FrameHead + len(msg)))
	c.meter.took(1, time.Since(now))
	if len(c.out) < flushAt {
		return nil
	}
	return c.flush()
}
