package socket

import (
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"carronade/internal/impair"
)

// A Poller is a waiter that reads connections on its thread, so that an answer costs no
// switch to a goroutine of its connection.
//
// Its connections have descriptors of their own, which the runtime's poller does
// not know: there each answer costs a second read that finds nothing.
type Poller struct {
	*Waiter
	mu    sync.Mutex
	conns map[int]*Conn // by descriptor
	ended bool
}

const (
	// Watched is what of a connection ends a wait. Each change is told once: a
	// connection that is told until it is empty is looked at twice for each answer.
	Watched = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	// Over says that the other side has ended the connection: nothing is told after it.
	Over = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
)

// NewPoller makes one, nil where there are no waiters.
func NewPoller(now func() time.Duration) *Poller {
	w := NewWaiter(now)
	if w == nil {
		return nil
	}
	return &Poller{Waiter: w, conns: map[int]*Conn{}}
}

// A Conn is a plain TCP connection whose reader is a poller. Close ends it and may
// come from anywhere; Release gives its descriptor back, once nobody writes.
type Conn struct {
	Stream
	p     *Poller
	local net.Addr
	serve func(end bool) (over bool)
	gone  chan struct{}
	once  sync.Once
}

// Take makes a connection the poller's. False: it is no plain TCP connection, or
// there are no descriptors left, and it is as it was.
func (p *Poller) Take(nc net.Conn) (*Conn, bool) {
	c := &Conn{p: p, local: nc.LocalAddr(), gone: make(chan struct{})}
	fd, ok := Own(nc)
	if !ok {
		return nil, false
	}
	c.Stream = p.Stream(fd, nc.RemoteAddr())
	return c, true
}

// Serve has the poller's thread call serve whenever there is something to read, and
// returns when serve reported that the connection is over. end says that the other side
// has ended the connection, so that everything has to be read. Otherwise serve may stop
// reading when a read filled its buffer only in part.
func (c *Conn) Serve(serve func(end bool) (over bool)) {
	p := c.p
	c.serve = serve
	p.mu.Lock()
	err := net.ErrClosed
	if !p.ended {
		err = p.Control(unix.EPOLL_CTL_ADD, c.fd, Watched)
	}
	if err == nil {
		p.conns[c.fd] = c
	}
	p.mu.Unlock()
	if err != nil {
		c.Close()
		c.alone = true
		for !serve(true) { // it finds that the connection is over
		}
		return
	}
	<-c.gone
}

// Write writes all of b, and waits until it is written.
func (c *Conn) Write(b []byte) (int, error) {
	for n := 0; ; {
		k, err := unix.Write(c.fd, b[n:])
		n += max(k, 0)
		switch {
		case n == len(b):
			return n, nil
		case err == unix.EAGAIN:
			c.writable()
		case err != nil && err != unix.EINTR:
			return n, &net.OpError{Op: "write", Net: "tcp", Addr: c.remote, Err: err}
		}
	}
}

// writable waits until the socket takes bytes, or is over.
func (c *Conn) writable() {
	fds := [1]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLOUT}}
	_, _ = unix.Poll(fds[:], -1) // EINTR: a look too many
}

// Close ends the connection: its poller and its writer notice.
func (c *Conn) Close() error {
	_ = unix.Shutdown(c.fd, unix.SHUT_RDWR) // which may be gone already
	return nil
}

// Release gives back the descriptor. Nobody may use the connection any more.
func (c *Conn) Release() { c.once.Do(func() { unix.Close(c.fd) }) }

// LocalAddr implements net.Conn, as do the following.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is the other side's.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline is not there: whoever waits for an answer closes the connection.
func (c *Conn) SetDeadline(time.Time) error { return errNoDeadline }

// SetReadDeadline likewise.
func (c *Conn) SetReadDeadline(time.Time) error { return errNoDeadline }

// SetWriteDeadline likewise.
func (c *Conn) SetWriteDeadline(time.Time) error { return errNoDeadline }

var errNoDeadline = fmt.Errorf("a polled connection has no deadlines")

// Wait implements load.Waiting.
func (p *Poller) Wait(until time.Duration, patient, idle bool) {
	n := p.Sleep(until, patient, idle)
	impair.Point(impair.Receive, p.At())
	p.handle(n)
	p.Awake()
}

// handle serves the first n events.
func (p *Poller) handle(n int) {
	for i := range n {
		fd, events := p.Found(i)
		p.mu.Lock()
		c := p.conns[fd]
		p.mu.Unlock()
		if c != nil && c.serve(events&Over != 0) {
			p.mu.Lock()
			delete(p.conns, fd)
			_ = p.Control(unix.EPOLL_CTL_DEL, fd, 0)
			p.mu.Unlock()
			close(c.gone)
		}
	}
}

// Leave implements load.Waiting. Connections that are still there are served until
// they are over.
func (p *Poller) Leave() {
	p.Retire()
	go func() {
		for {
			p.mu.Lock()
			if len(p.conns) == 0 {
				p.ended = true
				p.Close()
				p.mu.Unlock()
				return
			}
			p.mu.Unlock()
			p.handle(p.Look(time.Second))
		}
	}()
}
