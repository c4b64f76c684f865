package franz

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/conn/socket"
	"carronade/internal/kafka/cluster"
)

// A fetchConn is a connection of a client that reads records. It notes when requests for
// records were written, and when their answers can have arrived. franz-go has a
// connection of its own for such requests to each broker, with one in flight. One
// goroutine writes and one reads.
type fetchConn struct {
	net.Conn
	late   *ownLateness
	broker int32       // -1: not known
	asked  atomic.Bool // a request for records has no answer yet
	times  readTimes   // of the reader

	size [4]byte // of the answer that is being read; only the reader uses these
	have int     // bytes of size
	left int     // bytes of the answer still to come
}

// dialer returns the option with which a client's connections are watched.
func (l *ownLateness) dialer(s *cluster.Security) kgo.Opt {
	return kgo.Dialer(func(ctx context.Context, _, addr string) (net.Conn, error) {
		conn, err := s.DialForClient(ctx, addr)
		if err != nil {
			return nil, err
		}
		return newFetchConn(conn, l), nil
	})
}

func newFetchConn(conn net.Conn, l *ownLateness) *fetchConn {
	return &fetchConn{Conn: conn, late: l, broker: -1, times: readTimes{in: socket.NewStamped(conn), of: &l.times}}
}

// Write implements net.Conn. franz-go writes each request in one call.
func (c *fetchConn) Write(b []byte) (int, error) {
	if len(b) < 6 || kmsg.Key(binary.BigEndian.Uint16(b[4:])) != kmsg.Fetch {
		return c.Conn.Write(b)
	}
	before := c.late.now()
	c.late.asked(c.broker, before, before) // the answer may come before Write returns
	c.asked.Store(true)
	n, err := c.Conn.Write(b)
	if c.asked.Load() {
		c.late.asked(c.broker, before, c.late.now())
	}
	return n, err
}

// Read implements net.Conn.
func (c *fetchConn) Read(b []byte) (int, error) {
	n, err := c.times.in.Read(b)
	c.times.read()
	for rest := b[:n]; len(rest) > 0; {
		if c.left == 0 { // between two answers, or in the size of one
			k := copy(c.size[c.have:], rest)
			c.have += k
			rest = rest[k:]
			if c.have < len(c.size) {
				break
			}
			c.have, c.left = 0, int(binary.BigEndian.Uint32(c.size[:]))
			continue
		}
		k := min(len(rest), c.left)
		c.left -= k
		rest = rest[k:]
		if c.left == 0 && c.asked.Swap(false) {
			c.late.answered(c.broker, c.times.arrived())
		}
	}
	return n, err
}

// Close implements net.Conn.
func (c *fetchConn) Close() error {
	if c.asked.Swap(false) {
		c.late.lost(c.broker)
	}
	return c.Conn.Close()
}
