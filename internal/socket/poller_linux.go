package socket

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"carronade/internal/impair"
)

// A Poller is where one sending thread waits: for a point in time, for answers on
// its connections, and for whoever wakes it, by one system call. It reads on that
// thread, so that an answer costs no switch to a goroutine of its connection, and
// so that it is known for how long one may have waited for its reader.
//
// Its connections have descriptors of their own, which the runtime's poller does
// not know: there each answer costs a second read that finds nothing.
type Poller struct {
	now  func() time.Duration
	fd   int // of epoll
	wake int // an eventfd

	mu    sync.Mutex
	conns map[int32]*Conn // by descriptor
	ended bool            // its descriptors are closed

	state   atomic.Int32
	events  []unix.EpollEvent
	looked  time.Duration // when the last look for answers was over
	found   found         // by the last wait
	hasty   time.Duration // until then answers are not left for long (see Conn.Together)
	stamps  bool          // the kernel's times of what connections read are known
	gap     Gap
	parking *parking // nil: there is none
}

// found is what a wait knows of when that which it found arrived.
type found struct {
	looked, entered, now time.Duration // the last look before it was over, it began, it was over
	woken                bool          // the thread slept until it was woken for it
	since                time.Duration // the earliest that it can have arrived; -1: nobody has asked
}

// What the thread is doing.
const (
	running  int32 = iota
	notified       // somebody woke it before it waited
	parked         // it waits, and a wake has to write
)

const (
	mostEvents = 128
	// Each change is told once: a connection that is told until it is empty is
	// looked at twice for each answer.
	watched = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	over    = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
)

// NewPoller makes one, nil where the system has none to give (Linux before 5.11, or
// no descriptors left). now is not called before the first Wait.
func NewPoller(now func() time.Duration) *Poller {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	p := &Poller{now: now, fd: fd, conns: map[int32]*Conn{}, events: make([]unix.EpollEvent, mostEvents), stamps: true}
	var zero unix.Timespec
	if _, e := p.look(&zero, true); e != 0 {
		unix.Close(fd)
		return nil
	}
	if p.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		err = unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, p.wake, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(p.wake)})
	}
	if err != nil {
		if p.wake > 0 {
			unix.Close(p.wake)
		}
		unix.Close(fd)
		return nil
	}
	p.parking = newParking()
	return p
}

// A Conn is a plain TCP connection whose reader is a poller. Close ends it and may
// come from anywhere; Release gives its descriptor back, once nobody writes.
type Conn struct {
	p      *Poller
	fd     int
	remote net.Addr
	local  net.Addr
	serve  func(end bool) (over bool)
	stamp  int64 // when the last byte of the last read arrived, by the wall clock, in ns; 0: not known
	msg    message
	segs   segmentCount
	alone  bool // it is not read by its poller's thread
	gone   chan struct{}
	once   sync.Once
}

// Take makes a connection the poller's. False: it is no plain TCP connection, or
// there are no descriptors left, and it is as it was.
func (p *Poller) Take(nc net.Conn) (*Conn, bool) {
	c := &Conn{p: p, remote: nc.RemoteAddr(), local: nc.LocalAddr(), gone: make(chan struct{})}
	var ok bool
	if c.fd, ok = Own(nc); !ok {
		return nil, false
	}
	if !c.msg.setup(c.fd) {
		p.stamps = false
	}
	c.segs.begin(c.fd)
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
		err = unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: watched, Fd: int32(c.fd)})
	}
	if err == nil {
		p.conns[int32(c.fd)] = c
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

// Read reads what is there: 0 bytes and no error when there is nothing.
func (c *Conn) Read(b []byte) (int, error) {
	for {
		n, stamp, e := c.msg.receive(uintptr(c.fd), b)
		c.stamp = stamp
		switch {
		case e == syscall.EINTR:
		case e == syscall.EAGAIN:
			return 0, nil
		case e != 0:
			return 0, &net.OpError{Op: "read", Net: "tcp", Addr: c.remote, Err: e}
		case n == 0:
			return 0, io.EOF
		default:
			c.segs.read += uint64(n)
			c.segs.reads++
			return int(n), nil
		}
	}
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

// Prepare implements load.Waiting.
func (p *Poller) Prepare() { p.gap.Open() }

// never is what an offset is that does not come.
const never = 1<<63 - 1

// Wait implements load.Waiting.
func (p *Poller) Wait(until time.Duration, patient bool) {
	f := &p.found
	*f = found{looked: p.looked, entered: p.now(), since: -1}
	n, e := p.sleep(until, patient)
	f.now = p.now()
	switch {
	case e == syscall.EINTR: // perhaps at the end of a stop: what came meanwhile was not looked for
		p.looked = f.entered
	case n < len(p.events): // else there may be more that was not looked at
		p.looked = f.now
	}
	p.state.Store(running) // what is settled below is found without a wake
	impair.Point(impair.Receive, f.now)
	p.handle(n)
	p.state.Store(running) // whoever wakes from here on finds that what he left is looked at
}

// look waits for something to do. own: the thread has a processor of the Go
// scheduler of its own, and keeps it while it waits. A collection that wants the
// world to stop interrupts the wait by a signal.
func (p *Poller) look(left *unix.Timespec, own bool) (int, syscall.Errno) {
	call := syscall.Syscall6
	if own {
		call = syscall.RawSyscall6
	}
	n, _, e := call(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p.events))), uintptr(len(p.events)),
		uintptr(unsafe.Pointer(left)), 0, 0)
	runtime.KeepAlive(left)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// handle serves the first n events.
func (p *Poller) handle(n int) {
	for i := range n {
		e := &p.events[i]
		if int(e.Fd) == p.wake {
			continue // of which each write is told once, so nothing has to be read
		}
		p.mu.Lock()
		c := p.conns[e.Fd]
		p.mu.Unlock()
		if c != nil && c.serve(e.Events&over != 0) {
			p.mu.Lock()
			delete(p.conns, e.Fd)
			_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, c.fd, nil)
			p.mu.Unlock()
			close(c.gone)
		}
	}
}

// Wake implements load.Waiting.
func (p *Poller) Wake() {
	if p.state.Swap(notified) == parked {
		b := [8]byte{1}
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.ended {
			_, _ = unix.Write(p.wake, b[:])
		}
	}
}

// Leave implements load.Waiting. Connections that are still there are served until
// they are over.
func (p *Poller) Leave() {
	p.gap.Close()
	go func() {
		for {
			p.mu.Lock()
			if len(p.conns) == 0 {
				p.ended = true
				p.close()
				p.mu.Unlock()
				return
			}
			p.mu.Unlock()
			wait := unix.NsecToTimespec(int64(time.Second))
			n, _ := p.look(&wait, false)
			p.found = found{since: 0}
			p.handle(n)
		}
	}()
}
