package socket

import (
	"io"
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"carronade/internal/impair"
)

// together is an io_uring that makes the writes of many connections, receives their small
// answers and waits, in one system call. All connections begin in epoll, where every
// goroutine may add one, and the io_uring watches the epoll descriptor. With their first
// event they move to the io_uring, since a look into epoll is one more call for each wait.
type together struct {
	*Ring
	writers   []*Writer // by tag: their writes are queued, and not completed
	open      int       // of them
	receiving int       // connections
	watched   bool      // the epoll descriptor
	more      bool      // the last look may have left events
	again     []*Conn   // to be served once more
	spare     []*Conn   // the other list for again
	closing   bool
	entered   time.Duration // when the last wait began
	ended     time.Duration // when it ended
	waitEnded time.Duration // when everything that had come was taken
}

// A receiver is a connection's state on an io_uring, which receives small answers, and reports
// for other connections that they became readable or writable. Each change is reported once. (A
// report of what is would come again and again for a client that sends nothing more and does
// not read its answers.)
type receiver struct {
	moved     bool // from epoll
	receiving bool // answers, or reports
	ending    bool // it is over once it does not receive any more
	queued    bool // in again
	blocked   bool // its owner waits until it is writable
	data      []byte
	failed    error
}

// Tags are a descriptor or the number of a writer, and an operation.
const (
	tagReceive = 1 + iota
	tagWrite
	tagReady // epoll has events
	tagCancel
	tagBits = 3
)

// changes are what the io_uring reports of a connection whose answers it does not receive.
const changes = unix.POLLIN | unix.POLLPRI | unix.POLLOUT | unix.POLLRDHUP

// mostLater is the largest write that may be made together with others, in bytes: a socket
// may accept only a part of a larger one, and the rest would have to wait.
const mostLater = 32 << 10

// The buffers for answers. A larger answer comes in pieces.
const (
	smallAnswer = 2 << 10
	fewBuffers  = 64 // all connections share them, so that they stay in the caches
	mostBuffers = 1 << 10
)

// openTogether makes an io_uring for the calling thread, if the system has one and allows
// it.
func (p *Poller) openTogether() {
	p.mu.Lock()
	n := min(max(p.open, fewBuffers), mostBuffers)
	p.mu.Unlock()
	if r, err := NewRing(n, smallAnswer, StampSpace); err == nil {
		p.together = &together{Ring: r, waitEnded: p.now()}
		p.method.Store("io_uring")
	}
}

// Later makes the write with the next wait of the poller that reads the connection. It is
// for the poller's thread. On this thread done gets the result, as Write returns it; until
// then the pieces must not change. It returns false if that is not possible; then nothing
// is written, and Write must be called.
func (w *Writer) Later(done func(n int, err error)) bool {
	if w.polled == nil || w.polled.alone || w.polled.p.together == nil || len(w.iov) != 1 || w.iov[0].Len > mostLater {
		return false
	}
	g := w.polled.p.together
	if g.Full() { // it would be sent now, before its time is taken
		return false
	}
	w.began.Store(int64(g.waitEnded)) // until the time is known
	w.done = done
	g.Send(w.polled.fd, unsafe.Slice(w.iov[0].Base, w.iov[0].Len), uint64(len(g.writers))<<tagBits|tagWrite)
	g.writers = append(g.writers, w)
	g.open++
	return true
}

// move moves a connection from epoll to the io_uring.
func (g *together) move(p *Poller, c *Conn) {
	c.moved = true
	_ = p.Control(unix.EPOLL_CTL_DEL, c.fd, 0) // two readers would interfere
	g.receive(c)
}

func (g *together) receive(c *Conn) {
	c.receiving = true
	g.receiving++
	if tag := uint64(c.fd)<<tagBits | tagReceive; c.small {
		g.Recv(c.fd, tag)
	} else {
		g.Watch(c.fd, changes, true, tag)
	}
}

// wait makes the writes, waits like Waiter.Sleep, and serves connections.
func (g *together) wait(p *Poller, until time.Duration, idle bool) {
	if !g.watched {
		g.watched = true
		g.Watch(p.fd, unix.POLLIN, true, tagReady)
	}
	wait, left := 0, time.Duration(-1)
	before := g.entered
	g.entered = p.now()
	writes := g.open
	if !g.more && len(g.again) == 0 && p.MayWait() {
		wait = writes + 1 // all writes, and something else
		if until != Never {
			left = max(0, until-g.entered)
		}
	}
	err := g.Enter(wait, left, !idle)
	p.Awake() // what follows needs no wake
	now := p.now()
	g.ended = now
	p.Waited(min(before, g.waitEnded), g.waitEnded, g.entered, now, LeastSleep+time.Duration(writes+g.Ready())*transferCost)
	impair.Point(impair.Receive, now)
	ready, some := g.complete(p)
	if ready || g.more {
		n, _ := p.peek()
		g.more = n == len(p.events)
		p.handle(n)
	}
	g.serveAgain(p)
	if some || err == syscall.ETIME {
		g.waitEnded = now
	} else { // interrupted, perhaps after the process was stopped: nothing was read
		g.waitEnded = g.entered
	}
}

// transferCost is an upper bound of the kernel's usual time for a write or a receive.
const transferCost = 10 * time.Microsecond

// complete handles what was completed. ready: epoll has events; some: there was something.
func (g *together) complete(p *Poller) (ready, some bool) {
	for {
		e, ok := g.Next()
		if !ok {
			return ready, some
		}
		some = true
		switch at := int(e.Tag >> tagBits); e.Tag & (1<<tagBits - 1) {
		case tagReceive:
			g.received(p, p.conn(at), &e)
		case tagWrite:
			g.wrote(g.writers[at], &e)
		case tagReady:
			ready, g.watched = true, e.More
		}
	}
}

// wrote passes on the result of a write.
func (g *together) wrote(w *Writer, e *Completion) {
	if g.open--; g.open == 0 {
		g.writers = g.writers[:0]
	}
	w.began.Store(int64(g.entered))
	clear(w.iov)
	var err error
	if e.Err != 0 && e.Err != syscall.EAGAIN && e.Err != syscall.EINTR {
		err = &net.OpError{Op: "write", Net: "tcp", Addr: w.polled.remote, Err: e.Err}
	}
	w.done(e.N, err)
}

// received serves a connection that received something.
func (g *together) received(p *Poller, c *Conn, e *Completion) {
	if c.receiving = e.More; !e.More {
		g.receiving--
	}
	over := c.ending
	switch {
	case over:
	case c.small:
		over = c.take(e)
	default:
		over = c.changed(e)
	}
	g.Release(e)
	g.served(p, c, over)
}

// served ends a connection that is over, and lets another receive again.
func (g *together) served(p *Poller, c *Conn, over bool) {
	switch {
	case over && c.receiving && !c.ending:
		c.ending = true
		g.Cancel(uint64(c.fd)<<tagBits|tagReceive, tagCancel)
	case over && !c.receiving:
		p.remove(c)
	case c.moved && !c.receiving && !g.closing:
		g.receive(c)
	}
}

// serveAgain serves the connections of again.
func (g *together) serveAgain(p *Poller) {
	list := g.again
	g.again = g.spare[:0]
	for _, c := range list {
		if c.queued = false; p.conn(c.fd) == c && !c.ending {
			g.served(p, c, c.serve(c.last))
		}
	}
	clear(list)
	g.spare = list
}

// take serves what was received, or the end of the connection.
func (c *Conn) take(e *Completion) (over bool) {
	switch {
	case e.Err == syscall.ENOBUFS || e.Err == syscall.ECANCELED || e.Err == syscall.EAGAIN || e.Err == syscall.EINTR:
		return false
	case e.Err != 0:
		c.failed = c.readError(e.Err)
	case e.N == 0:
		c.failed = io.EOF
	default:
		c.Stream.received(e.N, StampOf(e.Control), e.N < smallAnswer)
		c.data = e.Data
	}
	return c.serve(c.failed != nil)
}

// changed serves a connection that became readable, writable for an owner that waits for that, or
// ended.
func (c *Conn) changed(e *Completion) (over bool) {
	switch {
	case e.Err == syscall.ECANCELED || e.Err == syscall.EAGAIN || e.Err == syscall.EINTR:
		return false
	case e.Err == 0 && e.N&^unix.POLLOUT == 0 && !c.blocked:
		return false
	}
	c.blocked = false
	c.last = c.last || e.Err != 0 || e.N&lastEvents != 0
	return c.serve(c.last)
}

// Read reads the available data: 0 bytes and no error if there is none.
func (c *Conn) Read(b []byte) (int, error) {
	if !c.moved || !c.small {
		return c.Stream.Read(b)
	}
	n := copy(b, c.data)
	if c.data = c.data[n:]; n == 0 && len(b) > 0 {
		return 0, c.failed
	}
	return n, nil
}

// close completes the writes that are queued, and moves the connections back to epoll.
func (g *together) close(p *Poller) {
	g.closing = true
	g.CancelAll(tagCancel)
	for g.open > 0 || g.receiving > 0 || g.watched {
		g.entered = p.now()
		_ = g.Enter(1, 10*time.Millisecond, false)
		g.complete(p)
	}
	p.together = nil
	_ = g.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for fd, c := range p.conns {
		switch {
		case c == nil || !c.moved && !c.queued:
			continue
		case !c.moved:
			c.queued = false
			_ = p.Control(unix.EPOLL_CTL_MOD, fd, watchedEvents|unix.EPOLLOUT)
			continue
		}
		c.moved, c.queued = false, false
		if p.Control(unix.EPOLL_CTL_ADD, fd, watchedEvents|unix.EPOLLOUT) != nil { // those of again, too
			p.conns[fd] = nil
			p.open--
			c.leave()
		}
	}
}
