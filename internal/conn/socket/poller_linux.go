package socket

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"carronade/internal/impair"
)

// A Poller is a waiter that reads connections on its thread, so that an answer needs no
// switch to a goroutine of its connection.
//
// Its connections have descriptors that are not registered with the runtime's poller:
// with that poller, each answer needs a second read that finds nothing.
//
// For many connections that wait for small answers it also has an io_uring, if the system
// allows one. Then one system call makes the writes of all connections that were begun since
// the last wait (see Writer.Later), waits, and receives.
type Poller struct {
	*Waiter
	scratch  []byte    // see Conn.Scratch
	combine  bool      // system calls, if the system allows it
	together *together // nil: none; only the thread uses it
	method   atomic.Value

	mu    sync.Mutex
	conns []*Conn // by descriptor; nil: not one of the poller's
	open  int     // connections in conns
	ended bool
}

// ScratchSize is the size of the buffer that the connections of a poller share, in bytes:
// room for ten thousand small answers.
const ScratchSize = 64 << 10

const (
	// watchedEvents are the events of a connection that end a wait. They are
	// edge-triggered: with level-triggered events, each answer would be reported twice.
	watchedEvents = unix.EPOLLIN | unix.EPOLLPRI | unix.EPOLLRDHUP | unix.EPOLLET
	// lastEvents show that no event may follow: the other side has ended the connection, or
	// sent urgent data (tcp(7)), before which a read stops, with more bytes behind it.
	lastEvents = unix.EPOLLPRI | unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
)

// Polls says that this system supports pollers.
const Polls = true

// NewPoller returns a poller, nil if waiters are not supported. combine says that it may
// combine system calls by an io_uring. Then it leaves no answers unread: it is for runs
// without a schedule.
func NewPoller(now func() time.Duration, combine bool) *Poller {
	w := NewWaiter(now)
	if w == nil {
		return nil
	}
	p := &Poller{Waiter: w, combine: combine}
	p.method.Store("epoll")
	return p
}

// NewServerPoller returns a poller for a server, which combines system calls and does not ask
// the kernel when data arrived; nil if waiters are not supported.
func NewServerPoller(now func() time.Duration) *Poller {
	p := NewPoller(now, true)
	if p != nil {
		p.untimed = true
		p.ReadAtOnce()
	}
	return p
}

// Method returns how the thread waits: by "epoll" or "io_uring". Safe for concurrent use.
func (p *Poller) Method() string { return p.method.Load().(string) }

// Prepare implements load.PollWaiter.
func (p *Poller) Prepare() {
	p.Waiter.Prepare()
	if p.combine {
		p.openTogether()
	}
}

// A Conn is a plain TCP connection that the thread of a poller reads. Close ends it and may
// be called from any goroutine; Release closes its descriptor, once no goroutine writes.
type Conn struct {
	Stream
	p     *Poller
	local net.Addr
	serve func(all bool) (over bool)
	last  bool // no event may follow
	small bool
	receiver
	over func()
	once sync.Once
}

// Take hands a connection over to the poller. It returns false if nc is not a plain TCP
// connection, or no descriptors are left; nc is then unchanged.
func (p *Poller) Take(nc net.Conn) (*Conn, bool) {
	c := &Conn{p: p, local: nc.LocalAddr()}
	remote := nc.RemoteAddr()
	fd, ok := Own(nc)
	if !ok {
		return nil, false
	}
	c.Stream = p.stream(fd, remote)
	return c, true
}

// Serve makes the poller's thread call serve whenever there is something to read. all means
// that everything must be read, since the other side may have ended the connection.
// Otherwise serve may stop reading when a read filled its buffer only partly. over is
// called once serve has reported that the connection is over, on the same thread, and must
// not block.
func (c *Conn) Serve(serve func(all bool) (over bool), over func()) {
	p := c.p
	c.serve, c.over = serve, over
	p.mu.Lock()
	err := net.ErrClosed
	if !p.ended {
		err = p.Control(unix.EPOLL_CTL_ADD, c.fd, watchedEvents)
	}
	if err == nil {
		if n := c.fd + 1 - len(p.conns); n > 0 {
			p.conns = append(p.conns, make([]*Conn, n)...)
		}
		p.conns[c.fd] = c
		p.open++
	}
	p.mu.Unlock()
	if err != nil {
		c.leave()
	}
}

// leave ends a connection that the poller cannot read.
func (c *Conn) leave() {
	c.Close()
	c.alone = true
	go func() {
		for !c.serve(true) { // until it finds that the connection is over
		}
		c.over()
	}()
}

// Small says, before Serve, that reads usually find only a small answer. A poller that
// combines calls then receives it with the call in which it waits, instead of a call for each.
func (c *Conn) Small() { c.small = true }

// Again makes the poller's thread call the function of Serve once more, after other connections.
// That function alone may call it, like WhenWritable.
func (c *Conn) Again() {
	switch g := c.ring(); {
	case g == nil:
		c.WhenWritable()
	case !c.queued:
		c.queued = true
		g.again = append(g.again, c)
	}
}

// WhenWritable makes the poller's thread call the function of Serve once more, as soon as the
// socket accepts bytes.
func (c *Conn) WhenWritable() {
	if c.blocked = true; c.ring() == nil || !c.moved {
		_ = c.p.Control(unix.EPOLL_CTL_MOD, c.fd, watchedEvents|unix.EPOLLOUT)
	}
}

// ring returns the io_uring that serves the connection, nil if none does.
func (c *Conn) ring() *together {
	if c.alone {
		return nil
	}
	return c.p.together
}

// At returns the moment after the last read, by the clock of the poller: of answers that came
// together, the moment when all of them had come.
func (c *Conn) At() time.Duration {
	if c.moved && c.small {
		return c.p.together.ended
	}
	return c.p.now()
}

// Scratch returns a buffer of ScratchSize for the function that Serve calls. All
// connections of the poller share it, so its contents last until that function returns.
func (c *Conn) Scratch() []byte {
	if c.alone { // the poller's thread does not read it
		return make([]byte, ScratchSize)
	}
	if c.p.scratch == nil {
		c.p.scratch = make([]byte, ScratchSize)
	}
	return c.p.scratch
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

// writable waits until the socket accepts bytes or the connection is over.
func (c *Conn) writable() {
	fds := [1]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLOUT}}
	_, _ = unix.Poll(fds[:], -1) // EINTR: the caller tries once more
}

// Close ends the connection: its poller and its writer notice it.
func (c *Conn) Close() error {
	_ = unix.Shutdown(c.fd, unix.SHUT_RDWR) // the connection may be over already
	return nil
}

// Release closes the descriptor. The connection must no longer be in use.
func (c *Conn) Release() { c.once.Do(func() { unix.Close(c.fd) }) }

// LocalAddr implements net.Conn, like the following methods.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other side.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline is not supported: a caller that waits for an answer closes the
// connection.
func (c *Conn) SetDeadline(time.Time) error { return errNoDeadline }

// SetReadDeadline is not supported.
func (c *Conn) SetReadDeadline(time.Time) error { return errNoDeadline }

// SetWriteDeadline is not supported.
func (c *Conn) SetWriteDeadline(time.Time) error { return errNoDeadline }

var errNoDeadline = fmt.Errorf("a polled connection has no deadlines")

// Wait implements load.PollWaiter.
func (p *Poller) Wait(until time.Duration, patient, idle bool) {
	if p.together != nil {
		p.together.wait(p, until, idle)
	} else {
		n := p.Sleep(until, patient, idle)
		impair.Point(impair.Receive, p.At())
		p.handle(n)
	}
	p.Awake()
}

// handle serves the connections of the first n events.
func (p *Poller) handle(n int) {
	for i := range n {
		fd, events := p.Found(i)
		c := p.conn(fd)
		if c == nil { // it was a wake
			continue
		}
		c.last = c.last || events&lastEvents != 0
		switch over := c.serve(c.last); {
		case over:
			p.remove(c)
		case p.together != nil && !c.last:
			p.together.move(p, c)
		}
	}
}

// conn returns the connection with a descriptor, nil if there is none.
func (p *Poller) conn(fd int) *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if fd >= 0 && fd < len(p.conns) {
		return p.conns[fd]
	}
	return nil
}

// remove removes a connection that is over.
func (p *Poller) remove(c *Conn) {
	p.mu.Lock()
	p.conns[c.fd] = nil
	p.open--
	_ = p.Control(unix.EPOLL_CTL_DEL, c.fd, 0) // it may have been moved
	p.mu.Unlock()
	c.over()
}

// Leave implements load.PollWaiter. Remaining connections are served until they are
// over.
func (p *Poller) Leave() {
	if p.together != nil {
		p.together.close(p)
	}
	p.Retire()
	go func() {
		for {
			p.mu.Lock()
			if p.open == 0 {
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
