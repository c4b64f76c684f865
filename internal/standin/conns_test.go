package standin

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"carronade/test/testkit/assert"
)

// A scarceListener has no descriptors left a few times, then a connection, and is closed then.
type scarceListener struct {
	net.Listener
	nc     net.Conn
	failed int
}

func (l *scarceListener) Accept() (net.Conn, error) {
	nc := l.nc
	switch {
	case l.failed < 3:
		l.failed++
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	case nc == nil:
		return nil, net.ErrClosed
	}
	l.nc = nil
	return nc, nil
}

func TestAcceptRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer here.Close()
		var got []net.Conn
		Accept(&scarceListener{nc: there}, func(nc net.Conn) { got = append(got, nc) })
		assert.True(t, len(got) == 1 && got[0] == there, "served %v, want one connection", got)
	})
}

// A connection that is over is closed and counted. Errors are logged, but not ordinary ends, nor
// any after Close.
func TestConns(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var counted []int
	conns := Conns[int]{Log: &log, Ended: func(i int) { counted = append(counted, i) }}
	closed := func(here net.Conn) bool {
		_, err := here.Read(make([]byte, 1))
		return errors.Is(err, io.EOF)
	}
	var ends []func(error)
	var clients []net.Conn
	for i := range 4 {
		here, there := net.Pipe()
		defer here.Close()
		clients = append(clients, here)
		ends = append(ends, conns.Enter(there, i))
	}
	ends[0](io.EOF)
	ends[1](errors.New("a frame without a length"))
	assert.True(t, closed(clients[0]) && closed(clients[1]) && len(conns.Open) == 2 && len(counted) == 2,
		"%d are open, and %d were counted; want 2 and 2", len(conns.Open), len(counted))
	conns.Close()
	assert.True(t, closed(clients[2]) && closed(clients[3]), "Close leaves connections open")
	ends[2](errors.New("a frame that was cut off"))
	ends[3](net.ErrClosed)
	conns.Serving.Wait()
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, ": a frame without a length\n") {
		t.Errorf("logged %q", got)
	}
	late, there := net.Pipe()
	defer late.Close()
	assert.True(t, conns.Enter(there, 4) == nil && closed(late), "a connection is served after Close")
}
