package riemann

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"carronade/internal/standin"
	wire "carronade/internal/wire/riemann"
)

// sinkWindowSize is how many bytes the discarding server reads at once. It spends
// its time on reads and writes, so they are large.
const sinkWindowSize = 512 << 10

// queryTag is the first byte of a message that contains only a query: field 5, of
// bytes.
const queryTag = 5<<3 | 2

// ackRun contains the acks for as many messages as fit into a window: as only this server
// needs them, no other process makes them.
var ackRun = sync.OnceValue(func() []byte { return wire.AppendAcks(nil, sinkWindowSize/wire.FrameHead) })

// sink serves a connection of the discarding server: it counts frames by their
// lengths and answers with the same number of acks. It recognizes a query by its
// first byte and answers it, so that a client can ask which server this is. It
// allocates nothing.
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
		c.makeRoom(sinkWindowSize)
	}
}

func (c *conn) sinkWindow() error {
	now := time.Now()
	limit := int(c.opts.MaxMessage)
	for {
		frames, size := 0, 0
		if len(c.opts.Errors) == 0 {
			frames, size = wire.CountFrames(c.buf[c.r:c.w], limit)
		}
		if frames > 0 {
			if err := c.flush(); err != nil { // earlier answers come first
				return err
			}
			c.r += size
			c.tally.messages.Add(uint64(frames))
			c.tally.bytes.Add(uint64(size))
			for range frames {
				c.recordMessage(standin.NoRecord)
			}
			acks := ackRun()
			for left := frames * wire.AckSize; left > 0; {
				n, err := c.nc.Write(acks[:min(left, len(acks))])
				if err != nil {
					return err
				}
				left -= n
			}
			c.rec.Answered()
			c.meter.record(frames, time.Since(now))
		}
		msg, rest, err := wire.NextFrame(c.buf[c.r:c.w], limit)
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

// sinkOne answers one message: a query, or a message that may get an error.
func (c *conn) sinkOne(msg []byte, now time.Time) error {
	if len(msg) > 0 && msg[0] == queryTag {
		m, err := wire.DecodeMsg(msg)
		if err != nil {
			return err
		}
		c.out = c.find(c.out, m.Query, now)
		c.recordMessage(0)
	} else if i := c.dice.Draw(); i >= 0 {
		c.tally.refused.Add(1)
		c.out = appendError(c.out, c.opts.Errors[i].Name)
		c.recordMessage(standin.NoRecord)
	} else {
		c.out = append(c.out, wire.Ack...)
		c.recordMessage(standin.NoRecord)
	}
	c.tally.messages.Add(1)
	c.tally.bytes.Add(uint64(wire.FrameHead + len(msg)))
	c.meter.record(1, time.Since(now))
	if len(c.out) < flushAt {
		return nil
	}
	return c.flush()
}
