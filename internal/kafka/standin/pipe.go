package standin

import (
	"io"
	"net"
	"sync"
	"time"
)

// pipe returns the two ends of a connection inside the process. Unlike with
// net.Pipe, a write never waits for the reader, which saves a rendezvous per read.
// The protocol bounds the data in a pipe: one request or one answer at a time.
func pipe(client, server net.Addr) (here, there net.Conn) {
	up, down := newPipeHalf(), newPipeHalf()
	return &pipeConn{in: down, out: up, local: client, remote: server},
		&pipeConn{in: up, out: down, local: server, remote: client}
}

type pipeHalf struct {
	mu     sync.Mutex
	filled sync.Cond
	buf    []byte
	r      int
	closed bool
}

func newPipeHalf() *pipeHalf {
	h := &pipeHalf{}
	h.filled.L = &h.mu
	return h
}

func (h *pipeHalf) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.r == len(h.buf) {
		if h.closed {
			return 0, io.EOF
		}
		h.filled.Wait()
	}
	n := copy(p, h.buf[h.r:])
	h.r += n
	if h.r == len(h.buf) {
		h.buf, h.r = h.buf[:0], 0
	}
	return n, nil
}

func (h *pipeHalf) write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return 0, io.ErrClosedPipe
	}
	h.buf = append(h.buf, p...)
	h.filled.Signal()
	return len(p), nil
}

func (h *pipeHalf) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.filled.Broadcast()
}

type pipeConn struct {
	in, out       *pipeHalf
	local, remote net.Addr
}

func (c *pipeConn) Read(p []byte) (int, error)       { return c.in.read(p) }
func (c *pipeConn) Write(p []byte) (int, error)      { return c.out.write(p) }
func (c *pipeConn) LocalAddr() net.Addr              { return c.local }
func (c *pipeConn) RemoteAddr() net.Addr             { return c.remote }
func (c *pipeConn) SetDeadline(time.Time) error      { return nil }
func (c *pipeConn) SetReadDeadline(time.Time) error  { return nil }
func (c *pipeConn) SetWriteDeadline(time.Time) error { return nil }

func (c *pipeConn) Close() error {
	c.in.close()
	c.out.close()
	return nil
}

// pipeAddr is the address that the broker uses as its own and gives to clients:
// the front's.
type pipeAddr string

func (a pipeAddr) Network() string { return "tcp" }
func (a pipeAddr) String() string  { return string(a) }

type pipeListener struct {
	addr pipeAddr
	ch   chan net.Conn
	done chan struct{}
	once sync.Once
}

func (l *pipeListener) Addr() net.Addr { return l.addr }

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ch:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}
