package standin

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"carronade/internal/socket"
)

// RingServers serve the connections of a server that discards, many on each thread, with an
// io_uring: one system call writes the answers of all of them and waits for the next
// requests. The server shares the processors with the program that is measured; with a
// goroutine for each connection it would use more CPU than its clients do.
type RingServers struct {
	servers []*ringServer
	adopted atomic.Uint64
	wg      sync.WaitGroup // one for each thread
}

// NewRingServers makes one ring server for every two processors; the other processor is for
// its clients. Each reads window bytes at once, at most. It returns nil if the system lacks
// io_uring or cannot drop bytes.
func NewRingServers(window int) *RingServers {
	r := new(RingServers)
	for range (runtime.GOMAXPROCS(0) + 1) / 2 {
		k := &ringServer{}
		made := make(chan error)
		r.wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			err := k.open(window)
			made <- err
			if err == nil {
				k.run()
			}
		})
		if <-made != nil {
			break
		}
		r.servers = append(r.servers, k)
	}
	if len(r.servers) == 0 {
		return nil
	}
	return r
}

// adopt takes over a plain TCP connection from the Go runtime, which then finds it closed.
// ended is called once with the reason when the connection is over, on the thread that
// serves all others. False: it did not take it over, or Close was called before; the caller
// then serves the connection, which is closed in the latter case. It is safe for concurrent
// use.
func (r *RingServers) adopt(nc net.Conn, k Skimmer, ended func(error)) bool {
	if r == nil {
		return false
	}
	fd, ok := socket.Own(nc)
	if !ok {
		return false
	}
	n := r.adopted.Add(1)
	return r.servers[n%uint64(len(r.servers))].adopt(&ringConn{k: k, ended: ended, fd: fd})
}

// Close ends all connections, and returns when all of them are over.
func (r *RingServers) Close() {
	if r == nil {
		return
	}
	for _, k := range r.servers {
		k.close()
	}
	r.wg.Wait()
}

// A ringServer serves some of the connections on its thread.
type ringServer struct {
	ring   *socket.Ring
	wake   int    // an eventfd
	window []byte // all connections are read into it, one after the other
	alone  bool   // this thread has a scheduler processor that no goroutine waits for

	mu       sync.Mutex
	accepted []*ringConn
	closed   bool

	// Only the thread uses these.
	conns       []*ringConn
	free        []int
	active      int  // of the connections
	sends       int  // queued and not completed
	more        bool // a connection has more to do once its answers are sent
	again       []*ringConn
	wakeWatched bool
	ending      bool
}

// A ringConn is one connection of a ring server. While it is idle, it has no buffer.
//
// The kernel reports that it became readable or writable, not that it is: every change is
// reported once. (A report of what is would come again and again for a client that sends
// nothing more and does not read its answers.) So it counts as readable until a read returns
// less than there was room for, and as blocked from a send that was accepted in part on. A
// read also stops before urgent data (tcp(7)), with more bytes behind it that are not reported
// again: from the first urgent data on, a connection counts as readable until nothing is left.
type ringConn struct {
	k      Skimmer
	ended  func(error)
	fd, n  int
	unsent []byte // answers that are being written
	kept   []byte // bytes that are taken once the answers are written
	err    error  // why it ends

	readable bool
	readOn   bool // read until nothing is left: the client sends nothing more, or urgent data
	queued   bool // in again
	polled   bool // the kernel reports changes
	sending  bool
	blocked  bool // the socket accepted only part of the last send
	broken   bool // it cannot be written to
	over     bool // it ends when the kernel no longer reports changes
}

// A tag consists of the number of a connection and the operation.
const (
	tagPoll   = 0
	tagSend   = 1
	tagBits   = 1
	tagWake   = 1<<64 - 1
	tagCancel = 1<<64 - 2
)

const (
	// shortWait is how long a wait lasts before the Go scheduler is notified of it.
	shortWait = time.Millisecond
	// mostReads is how often a connection that is not answered is read before the others
	// are served.
	mostReads = 8
)

func (k *ringServer) open(window int) (err error) {
	if !CanDrop() {
		return syscall.ENOSYS
	}
	if k.ring, err = socket.NewRing(0, 0, 0); err != nil {
		return err
	}
	if k.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		_ = k.ring.Close()
		return fmt.Errorf("make an eventfd: %w", err)
	}
	k.window, k.alone = make([]byte, window), runtime.GOMAXPROCS(0) > 1
	return nil
}

func (k *ringServer) adopt(s *ringConn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		_ = unix.Close(s.fd)
		return false
	}
	k.accepted = append(k.accepted, s)
	k.wakeUp()
	return true
}

func (k *ringServer) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed { // afterwards the eventfd may be closed
		k.closed = true
		k.wakeUp()
	}
}

func (k *ringServer) wakeUp() {
	b := [8]byte{1}
	_, _ = unix.Write(k.wake, b[:])
}

// run serves until close was called and all connections are over.
func (k *ringServer) run() {
	for !k.ending || k.active > 0 {
		if !k.wakeWatched {
			k.wakeWatched = true
			k.ring.Watch(k.wake, unix.POLLIN, true, tagWake)
		}
		k.wait()
		for c, ok := k.ring.Next(); ok; c, ok = k.ring.Next() {
			switch c.Tag {
			case tagWake:
				var b [8]byte
				_, _ = unix.Read(k.wake, b[:])
				k.wakeWatched = c.More
				k.admit()
			case tagCancel:
			default:
				k.serve(k.conns[c.Tag>>tagBits], &c)
			}
		}
		again := k.again
		k.again = nil
		for _, s := range again {
			s.queued = false
			k.step(s)
		}
	}
	_ = unix.Close(k.wake)
	_ = k.ring.Close()
}

// wait passes what is queued to the kernel, and waits for something to do. The completions
// of the sends come at once.
func (k *ringServer) wait() {
	switch {
	case len(k.again) > 0:
		_ = k.ring.Enter(0, 0, true)
	case k.more:
		k.more = k.ring.Enter(k.sends, shortWait, true) != 0
	case !k.alone || k.ring.Enter(k.sends+1, shortWait, true) == syscall.ETIME:
		_ = k.ring.Enter(k.sends+1, -1, false)
	}
}

// admit begins to serve the new connections, and ends all of them after close.
func (k *ringServer) admit() {
	k.mu.Lock()
	newly := k.accepted
	k.accepted = nil
	closed := k.closed
	k.mu.Unlock()
	for _, s := range newly {
		if n := len(k.free); n > 0 {
			s.n, k.free = k.free[n-1], k.free[:n-1]
			k.conns[s.n] = s
		} else {
			s.n = len(k.conns)
			k.conns = append(k.conns, s)
		}
		k.active++
		k.poll(s)
	}
	if !closed || k.ending {
		return
	}
	k.ending = true
	for _, s := range k.conns {
		if s != nil {
			_ = unix.Shutdown(s.fd, unix.SHUT_RDWR) // ends also a wait for the client to read
			s.fail(net.ErrClosed)
			k.step(s)
		}
	}
}

func (s *ringConn) tag(what uint64) uint64 { return uint64(s.n)<<tagBits | what }

// poll makes the kernel report when a connection becomes readable or writable.
func (k *ringServer) poll(s *ringConn) {
	s.polled = true
	k.ring.Watch(s.fd, unix.POLLIN|unix.POLLPRI|unix.POLLOUT|unix.POLLRDHUP, true, s.tag(tagPoll))
}

// serve processes one completion of a connection.
func (k *ringServer) serve(s *ringConn, c *socket.Completion) {
	switch c.Tag & (1<<tagBits - 1) {
	case tagPoll:
		s.readOn = s.readOn || c.N&(unix.POLLPRI|unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
		s.readable = s.readable || s.readOn || c.N&unix.POLLIN != 0
		s.blocked = s.blocked && c.N&(unix.POLLOUT|unix.POLLHUP|unix.POLLERR) == 0
		switch {
		case c.More:
		case s.over:
			k.remove(s)
			return
		case c.Err != 0:
			s.polled, s.broken, s.unsent = false, true, nil
			s.fail(os.NewSyscallError("poll", c.Err))
		default:
			k.poll(s)
		}
	case tagSend:
		k.sends--
		s.sending = false
		switch {
		case s.broken:
		case c.Err != 0 && c.Err != syscall.EAGAIN && c.Err != syscall.EINTR:
			s.broken, s.unsent = true, nil
			s.fail(fmt.Errorf("writing an answer: %w", os.NewSyscallError("send", c.Err)))
		default:
			s.unsent = s.unsent[c.N:]
			s.blocked = len(s.unsent) > 0 && c.Err != syscall.EINTR
		}
	}
	k.step(s)
}

// fail ends a connection once its answers are written.
func (s *ringConn) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// step does what a connection needs next: it writes the answers first, and reads only then,
// so that it reads nothing from a client that does not read its answers.
func (k *ringServer) step(s *ringConn) {
	for reads := 0; !s.over && !s.sending; {
		if len(s.unsent) == 0 && !s.broken {
			s.unsent = s.k.Answers()
		}
		switch {
		case len(s.unsent) > 0 && s.blocked:
			return
		case len(s.unsent) > 0:
			s.sending = true
			k.sends++
			k.ring.Send(s.fd, s.unsent, s.tag(tagSend))
		case s.err != nil:
			k.end(s)
		case len(s.kept) > 0:
			n, err := s.k.Take(s.kept)
			s.fail(err)
			if s.kept = s.kept[n:]; len(s.kept) == 0 {
				s.kept = nil
			}
		case !s.readable:
			return
		case reads == mostReads:
			if !s.queued {
				s.queued = true
				k.again = append(k.again, s)
			}
			return
		default:
			reads++
			k.read(s)
		}
	}
	if s.sending && (s.readable || len(s.kept) > 0 || s.err != nil) {
		k.more = true
	}
}

// read reads or drops what there is.
func (k *ringServer) read(s *ringConn) {
	p, size, flags := unsafe.Pointer(unsafe.SliceData(k.window)), len(k.window), 0
	skippable := s.k.Skippable()
	if skippable >= minDrop {
		p, size, flags = nil, int(min(skippable, maxRecv)), unix.MSG_TRUNC
	}
	n, errno := receive(s.fd, p, size, flags)
	switch {
	case errno == syscall.EAGAIN:
		s.readable = false
	case errno != 0:
		s.fail(os.NewSyscallError("recv", errno))
	case n == 0:
		s.fail(s.k.End())
	default:
		s.readable = n == size || s.readOn
		if flags != 0 {
			s.fail(s.k.Skip(int64(n)))
			return
		}
		taken, err := s.k.Take(k.window[:n])
		s.fail(err)
		if err == nil && taken < n {
			s.kept = append(s.kept, k.window[taken:n]...)
		}
	}
}

// end ends a connection, when the kernel no longer uses its descriptor.
func (k *ringServer) end(s *ringConn) {
	s.over = true
	if s.polled {
		k.ring.Cancel(s.tag(tagPoll), tagCancel)
		return
	}
	k.remove(s)
}

func (k *ringServer) remove(s *ringConn) {
	k.conns[s.n] = nil
	k.free = append(k.free, s.n)
	k.active--
	s.ended(s.err)
	_ = unix.Close(s.fd)
}
