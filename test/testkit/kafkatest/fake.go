package kafkatest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/test/testkit/assert"
)

// Fake starts a cluster of kfake with one broker, which ends with t. kfake panics at bytes that are not a
// request. A client of another test may send some: it connects again to the port of its own server, which
// has ended, and finds this cluster. Here such bytes end only their connection.
func Fake(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	listen := kfake.ListenFn(func(network, address string) (net.Listener, error) {
		ln, err := net.Listen(network, address)
		return requestListener{ln}, err
	})
	c := assert.Value(kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), listen}, opts...)...))(t)
	t.Cleanup(c.Close)
	return c
}

type requestListener struct{ net.Listener }

func (l requestListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &requestConn{Conn: c}, nil
}

// A requestConn reads requests, and fails at the first bytes that begin none.
type requestConn struct {
	net.Conn
	begin []byte // of a request, not read yet
	left  int    // bytes of it after these
	tls   bool
}

func (c *requestConn) Read(p []byte) (int, error) {
	if len(c.begin) == 0 && c.left == 0 && !c.tls {
		b := make([]byte, 8) // size, key, version
		if _, err := io.ReadFull(c.Conn, b); err != nil {
			return 0, err
		}
		const handshake, largest = 0x16, 128 << 20
		size, key := binary.BigEndian.Uint32(b), int16(binary.BigEndian.Uint16(b[4:]))
		if c.tls = b[0] == handshake; !c.tls && (size < 8 || size > largest || kmsg.RequestForKey(key) == nil) {
			return 0, fmt.Errorf("no request begins with % x", b)
		}
		c.begin, c.left = b, int(size)-4
	}
	if len(c.begin) > 0 {
		n := copy(p, c.begin)
		c.begin = c.begin[n:]
		return n, nil
	}
	if !c.tls {
		p = p[:min(len(p), c.left)]
	}
	n, err := c.Conn.Read(p)
	c.left -= n
	return n, err
}
