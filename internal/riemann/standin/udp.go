package standin

import (
	"context"
	"fmt"
	"net"
	"time"

	"carronade/internal/riemann/wire"
	"carronade/internal/standin"
)

// serveUDP processes datagrams, one message each, until the socket is closed or
// the context ends during a stall. It answers nothing. Datagrams longer than the
// limit and those that do not decode are lost: the real server cuts long ones off
// and then fails to decode them (udp.clj).
func (c *core) serveUDP(ctx context.Context, pc *net.UDPConn, m *meter, start time.Time) error {
	t := handler{core: c}
	buf := make([]byte, c.opts.MaxDatagram+1)
	failed := time.Time{}
	for {
		n, _, err := pc.ReadFromUDPAddrPort(buf) // unlike the other methods, it allocates nothing
		if err != nil {
			return fmt.Errorf("reading datagrams: %w", err)
		}
		if c.opts.Stall.Every > 0 {
			// The socket's buffer fills during the pause, and then datagrams are lost,
			// as when the real server pauses.
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
					failed = now // log at most one line a second
					standin.Logf(c.opts.Log, "datagram of %d bytes: %v", n, err)
				}
				continue
			}
			if len(msg.Events) > 0 {
				_ = t.addEvents(msg.Events, now) // an error cannot be answered
			}
		}
		c.tally.messages.Add(1)
		c.tally.bytes.Add(uint64(n))
		m.record(1, time.Since(now))
	}
}
