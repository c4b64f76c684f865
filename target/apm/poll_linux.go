package apm

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"carronade/internal/impair"
	"carronade/internal/socket"
	"carronade/load"
)

// A poller reads the answers of many plain connections on one goroutine, and
// writes what their sockets would not take at once. It has descriptors of its
// own, which the runtime's poller does not know: there each answer costs a
// second read that finds nothing and a switch to the goroutine of its
// connection, which together are half of what a request costs outside of the
// kernel.
type poller struct {
	s    *session
	fd   int // of epoll
	wake int // an eventfd, written at the end
	buf  []byte

	mu    sync.Mutex
	links map[int32]*link // by descriptor
	ended atomic.Bool

	// Where a sending thread waits here.
	state  atomic.Int32
	events []unix.EpollEvent
	got    int           // events that were told
	at     int           // of these, the next to serve
	tried  bool          // to make a ring
	ring   *ring         // nil: there is none; the sending thread's alone
	called atomic.Bool   // there is something that only that thread may do
	looked time.Duration // when the last look for answers was over
	since  time.Duration // the earliest that the answers at hand can have arrived; 0: not known
	gap    socket.Gap
}

// What the sending thread is doing.
const (
	running  int32 = iota
	notified       // somebody woke it before it waited
	parked         // it waits, and a wake has to write
)

// socketOf is what a link knows of its descriptor.
type socketOf struct {
	p     *poller // nil: the connection is the runtime's
	fd    int
	at    time.Duration // when the last write began
	armed bool          // waits until it can be written to
	iov   []unix.Iovec
	onRing
	gone chan struct{} // closed when the poller is done with it
}

const (
	pollBuffer = 64 << 10
	mostEvents = 128
	mostIovecs = 64

	// Each change is told once: a connection that is told until it is empty is
	// looked at twice for each answer.
	watched = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	over    = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR // an end comes with these, and with nothing after
)

// newPollers is whether there may be any.
const newPollers = true

// newPoller makes one, nil where the system has none to give.
func newPoller(s *session) *poller {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)})
	}
	p := &poller{s: s, fd: fd, wake: wake, buf: make([]byte, pollBuffer), links: map[int32]*link{}, events: make([]unix.EpollEvent, mostEvents)}
	if err == nil {
		if _, e := p.look(0); e != 0 && e != syscall.EINTR { // Linux before 5.11
			err = e
		}
	}
	if err != nil {
		if wake > 0 {
			unix.Close(wake)
		}
		unix.Close(fd)
		return nil
	}
	return p
}

// take makes a connection the poller's. False: it stays the runtime's.
func (p *poller) take(k *link) bool {
	fd, ok := socket.Own(k.nc)
	if !ok {
		return false
	}
	k.p, k.socketOf.fd, k.gone = p, fd, make(chan struct{})
	k.iov = make([]unix.Iovec, 0, mostIovecs)
	return true
}

// add begins to read.
func (p *poller) add(k *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fd := k.socketOf.fd
	err := errClosed
	if !p.ended.Load() { // else its own descriptor may be closed, and be another's
		err = p.control(unix.EPOLL_CTL_ADD, k, false)
	}
	if err != nil {
		k.l.mu.Lock()
		k.kill(err)
		k.l.mu.Unlock()
		unix.Close(fd)
		close(k.gone)
		return
	}
	p.links[int32(fd)] = k
	p.call() // where there is a ring, it is the better place
}

// control tells the kernel what of a connection is to be told.
func (p *poller) control(op int, k *link, writable bool) error {
	e := unix.EpollEvent{Events: watched, Fd: int32(k.socketOf.fd)}
	if writable {
		e.Events |= unix.EPOLLOUT
	}
	if err := unix.EpollCtl(p.fd, op, k.socketOf.fd, &e); err != nil {
		return fmt.Errorf("watch the connection: %w", err)
	}
	return nil
}

// run reads until the poller is ended and has no connections left.
func (p *poller) run() {
	for !p.over() {
		if p.at == p.got {
			p.at, p.got = 0, p.wait(-1)
		}
		p.handle(p.got - p.at)
	}
}

// over ends the poller once it may end and has no connections.
func (p *poller) over() bool {
	if !p.ended.Load() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.links) > 0 {
		return false
	}
	unix.Close(p.fd)
	unix.Close(p.wake)
	return true
}

// handle serves the next n events.
func (p *poller) handle(n int) {
	for range n {
		e := &p.events[p.at]
		p.at++
		if int(e.Fd) == p.wake {
			var b [8]byte
			_, _ = unix.Read(p.wake, b[:])
			continue
		}
		p.mu.Lock()
		k := p.links[e.Fd]
		p.mu.Unlock()
		if k != nil && p.serve(k, e.Events) {
			p.drop(k)
		}
	}
}

// Prepare implements load.Waiting.
func (p *poller) Prepare() { p.gap.Open() }

// Wait implements load.Waiting. It serves one event at a time, so that a request
// goes out as soon as the answer before it came in, and the server has work
// while the next answer is read: with all answers read first and all requests
// written then, each side would wait for the other.
func (p *poller) Wait(until time.Duration, _ bool) {
	if !p.tried {
		p.tried = true
		p.openRing()
	}
	if p.ring != nil {
		p.ringWait(until)
		return
	}
	if p.at < p.got {
		p.handle(1)
		p.state.Store(running)
		return
	}
	var n int
	var e syscall.Errno
	entered := p.s.sink.Now()
	if p.state.CompareAndSwap(running, parked) {
		left := time.Duration(-1)
		if until != load.Never {
			left = max(0, until-entered)
		}
		n, e = p.look(left)
		p.state.Store(running) // what is settled below is found without a wake
	} else {
		n, e = p.look(0)
	}
	now := p.s.sink.Now()
	p.since = p.gap.Since(p.looked, entered, now, socket.LeastSleep)
	switch {
	case e == syscall.EINTR: // perhaps at the end of a stop: what came meanwhile was not looked for
		p.looked = entered
	case n < len(p.events): // else there may be more that was not looked at
		p.looked = now
	}
	impair.Point(impair.Receive, now)
	p.at, p.got = 0, n
	p.handle(min(n, 1))
	p.state.Store(running) // whoever wakes from here on finds that what he left is looked at
}

// Wake implements load.Waiting.
func (p *poller) Wake() {
	if p.state.Swap(notified) == parked {
		p.rouse()
	}
}

// Leave implements load.Waiting: from here on the poller is on its own.
func (p *poller) Leave() {
	if p.ring != nil {
		p.closeRing()
	}
	p.gap.Close()
	p.since = 0
	p.s.tasks.Go(p.run)
}

func (p *poller) rouse() {
	b := [8]byte{1}
	_, _ = unix.Write(p.wake, b[:])
}

// wait waits for something to do, for so long at most (-1: for ever).
func (p *poller) wait(left time.Duration) int {
	n, _ := p.pwait(syscall.Syscall6, left)
	return n
}

// look is a wait of which the Go scheduler is not told: the sending thread has a
// processor of its own there. A collection that wants the world to stop interrupts it
// by a signal.
func (p *poller) look(left time.Duration) (int, syscall.Errno) {
	return p.pwait(syscall.RawSyscall6, left)
}

func (p *poller) pwait(call func(trap, a1, a2, a3, a4, a5, a6 uintptr) (uintptr, uintptr, syscall.Errno), left time.Duration) (int, syscall.Errno) {
	var until *unix.Timespec
	if left >= 0 {
		ts := unix.NsecToTimespec(int64(left))
		until = &ts
	}
	n, _, e := call(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p.events))), uintptr(len(p.events)),
		uintptr(unsafe.Pointer(until)), 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// serve reads and writes one connection. True: it is over.
func (p *poller) serve(k *link, events uint32) (ended bool) {
	l := k.l
	var (
		n   int
		err error
	)
	if events&^unix.EPOLLOUT != 0 {
		n, err = k.read(p.buf)
	}
	now := l.s.sink.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = p.since
	defer func() { l.since = 0 }()
	for n > 0 || err != nil {
		k.received(p.buf[:n], err, now)
		if err != nil || n < len(p.buf) && events&over == 0 {
			break // what comes from here on is told anew
		}
		n, err = k.read(p.buf)
	}
	if events&unix.EPOLLOUT != 0 && !k.dead {
		k.write(true)
	}
	l.deliver()
	l.ready(now)
	return k.dead
}

// drop ends a connection that is over.
func (p *poller) drop(k *link) {
	fd := k.socketOf.fd
	p.mu.Lock()
	delete(p.links, int32(fd))
	p.mu.Unlock()
	unix.Close(fd)
	close(k.gone)
}

// end lets run return once all connections are over.
func (p *poller) end() {
	p.mu.Lock() // else run might close the descriptors between the two, and another's be written to
	defer p.mu.Unlock()
	p.ended.Store(true)
	p.rouse()
}

// read reads what there is; 0 without an error when there is nothing.
func (k *link) read(buf []byte) (int, error) {
	n, _, e := syscall.RawSyscall(unix.SYS_READ, uintptr(k.socketOf.fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)))
	switch {
	case e == syscall.EAGAIN || e == syscall.EINTR:
		return 0, nil
	case e != 0:
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: e}
	case n == 0:
		return 0, io.EOF
	}
	return int(n), nil
}

// write writes what is queued until the socket takes no more; then the poller
// goes on when it does.
func (k *link) write(waited bool) {
	l := k.l
	for l.next < l.tail && !k.dead {
		k.iov, k.marks, k.loaded = k.iov[:0], k.marks[:0], 0
		skip := k.offset
		for k.upto = l.next; k.upto < l.tail && len(k.iov) < mostIovecs; k.upto++ {
			b := l.at(k.upto).round.bytes[skip:]
			skip = 0
			k.iov = append(k.iov, unix.Iovec{Base: &b[0], Len: uint64(len(b))})
			k.marks = append(k.marks, mark{len(b), true})
			k.loaded += len(b)
		}
		k.at = l.s.sink.Now()
		call, at, size := uintptr(syscall.SYS_WRITEV), unsafe.Pointer(unsafe.SliceData(k.iov)), uintptr(len(k.iov))
		if len(k.iov) == 1 { // by far the most frequent, and cheaper as what it is
			call, at, size = syscall.SYS_WRITE, unsafe.Pointer(k.iov[0].Base), uintptr(k.iov[0].Len)
		}
		// The scheduler is not told: it would take writes that the server's
		// threads interrupt for waits, and hand the processor on, at the cost
		// of another thread's waking. They do not block.
		n, _, e := syscall.RawSyscall(call, uintptr(k.socketOf.fd), uintptr(at), size)
		var err error
		switch e {
		case 0:
		case syscall.EAGAIN:
			n = 0
		case syscall.EINTR:
			continue
		default:
			n, err = 0, &net.OpError{Op: "write", Net: "tcp", Err: e}
		}
		k.wrote(int(n), err, waited)
		if int(n) < k.loaded {
			break
		}
	}
	if more := l.next < l.tail && !k.dead; more != k.armed {
		k.armed = more
		if k.riding {
			k.p.ring.watch(k)
		} else if err := k.p.control(unix.EPOLL_CTL_MOD, k, more); err != nil {
			k.kill(err)
		}
	}
}

// shut ends the connection; the poller notices.
func (k *link) shut() { _ = unix.Shutdown(k.socketOf.fd, unix.SHUT_RDWR) }
