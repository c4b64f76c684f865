package riemann

import (
	"context"
	"fmt"
	"net"
	"time"

	"carronade/internal/standin/setting"
	wire "carronade/internal/wire/riemann"
)

// serveUDP takes datagrams, one message each, until the socket is closed, or the
// context ends in a stall.
// Nothing is answered. What is longer than the server takes is lost, and so is
// what does not decode: the real server cuts it off and then fails to read it
// (udp.clj).
func (c *core) serveUDP(ctx context.Context, pc *net.UDPConn, m *meter, start time.Time) error {
	t := taker{core: c}
	buf := make([]byte, c.opts.MaxDatagram+1)
	failed := time.Time{}
	for {
		n, _, err := pc.ReadFromUDPAddrPort(buf) // the one that allocates nothing
		if err != nil {
			return fmt.Errorf("reading datagrams: %w", err)
		}
		if c.opts.Stall.Every > 0 {
			// The socket's buffer fills meanwhile, and then datagrams are
			// lost, as they are when the real server pauses.
			select {
			case <-time.After(c.opts.Stall.Left(time.Since(start))):
			case <-ctx.Done():
				return nil
			}
		}
		now := time.Now()
		if n == len(buf) {
			c.tally.lost.Add(1)
			continue
		}
		if !c.opts.Discard {
			msg, err := wire.DecodeMsg(buf[:n])
			if err != nil {
				c.tally.lost.Add(1)
				if now.Sub(failed) > time.Second {
					failed = now // one line a second says it
					setting.Logf(c.opts.Log, "datagram of %d bytes: %v", n, err)
				}
				continue
			}
			if len(msg.Events) > 0 {
				_ = t.take(msg.Events, now) // nobody to tell of an error
			}
		}
		c.tally.messages.Add(1)
		c.tally.bytes.Add(uint64(n))
		m.took(1, time.Since(now))
	}
}
