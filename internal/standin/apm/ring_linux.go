package apm

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"carronade/internal/socket"
	"carronade/internal/standin"
)

// A ring server serves many connections on one thread with an io_uring: one
// system call writes the answers and reads the requests of all of them. The
// discard server shares the processors with the program that is measured; with
// goroutines it would use more CPU than its clients do.
type ringServer struct {
	d    *discard
	ring *socket.Ring
	wake int // an eventfd

	mu       sync.Mutex
	accepted []*ringConn
	closed   bool // the eventfd is closed

	// Only the thread uses these.
	ringConns   []*ringConn
	free        []int
	active      int // of the ring connections
	sends       int // queued and not completed
	wakeWatched bool
}

// A ringConn is one connection of a ring server.
type ringConn struct {
	skimmer
	fd, n    int
	buf      []byte
	unsent   []byte // answers that are being written
	spare    []byte
	err      error // why it ended
	reading  bool
	dropping bool // the current read discards the bytes
	sending  bool
	blocked  bool // the socket accepted only part of the last send
	watching bool // waiting until the socket is writable
}

// A tag consists of the number of a connection and the operation.
const (
	tagRead  = 0
	tagSend  = 1
	tagWrite = 2
	tagBits  = 2
	tagWake  = 1<<64 - 1
)

// shortWait is how long a wait lasts before the Go scheduler is notified of it.
const shortWait = time.Millisecond

// newRingServers makes one ring server for every two processors; the other
// processor is for its clients. It makes none if the system lacks io_uring or
// cannot drop bytes.
func newRingServers(d *discard) (all []*ringServer) {
	for range (runtime.GOMAXPROCS(0) + 1) / 2 {
		k := &ringServer{d: d}
		made := make(chan error)
		d.wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			err := k.open()
			made <- err
			if err == nil {
				k.run()
			}
		})
		if <-made != nil {
			break
		}
		all = append(all, k)
	}
	return all
}

func (k *ringServer) open() (err error) {
	if !standin.CanDrop() {
		return syscall.ENOSYS
	}
	if k.ring, err = socket.NewRing(0, 0, 0); err != nil {
		return err
	}
	if k.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("make an eventfd: %w", err)
	}
	return nil
}

// adopt takes a connection over from the Go runtime; false: it did not.
func (k *ringServer) adopt(c *discardConn) bool {
	fd, ok := socket.Own(c.Conn)
	if !ok {
		return false
	}
	k.d.mu.Lock()
	c.shutdown = func() { _ = unix.Shutdown(fd, unix.SHUT_RDWR) }
	if k.d.ctx.Err() != nil {
		c.shutdown() // discard.close has run already
	}
	k.d.mu.Unlock()
	k.mu.Lock()
	if k.closed { // the ring server has ended: the caller serves the connection, finds it closed and removes it
		k.mu.Unlock()
		k.d.mu.Lock()
		c.shutdown = nil // before the descriptor may be reused
		k.d.mu.Unlock()
		_ = unix.Close(fd)
		return false
	}
	k.accepted = append(k.accepted, &ringConn{skimmer: skimmer{d: k.d, c: c}, fd: fd, buf: make([]byte, discardBuffer)})
	k.wakeUp()
	k.mu.Unlock()
	return true
}

// close lets run return once all connections are over.
func (k *ringServer) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wakeUp()
}

func (k *ringServer) wakeUp() {
	if !k.closed { // afterwards the descriptor may be reused
		b := [8]byte{1}
		_, _ = unix.Write(k.wake, b[:])
	}
}

// run serves until the server is closed and all connections are over.
func (k *ringServer) run() {
	for !k.over() {
		if !k.wakeWatched {
			k.wakeWatched = true
			k.ring.Watch(k.wake, unix.POLLIN, true, tagWake)
		}
		wait := k.sends + 1 // every send completes without waiting for the client
		if k.ring.Enter(wait, shortWait, true) == syscall.ETIME {
			_ = k.ring.Enter(wait, -1, false)
		}
		for c, ok := k.ring.Next(); ok; c, ok = k.ring.Next() {
			if c.Tag == tagWake {
				var b [8]byte
				_, _ = unix.Read(k.wake, b[:])
				k.wakeWatched = c.More
				k.admit()
				continue
			}
			k.serve(k.ringConns[c.Tag>>tagBits], &c)
		}
	}
}

// over closes the ring server once the server is closed and it has no
// connections, and reports whether it did.
func (k *ringServer) over() bool {
	if k.d.ctx.Err() == nil || k.active > 0 {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.accepted) > 0 {
		return false
	}
	k.closed = true
	_ = unix.Close(k.wake)
	_ = k.ring.Close()
	return true
}

// admit begins to serve the new connections.
func (k *ringServer) admit() {
	k.mu.Lock()
	newly := k.accepted
	k.accepted = nil
	k.mu.Unlock()
	for _, s := range newly {
		if n := len(k.free); n > 0 {
			s.n, k.free = k.free[n-1], k.free[:n-1]
			k.ringConns[s.n] = s
		} else {
			s.n = len(k.ringConns)
			k.ringConns = append(k.ringConns, s)
		}
		k.active++
		k.step(s)
	}
}

// serve processes one completion of a connection.
func (k *ringServer) serve(s *ringConn, c *socket.Completion) {
	var failed error
	if c.Err != 0 && c.Err != syscall.EAGAIN && c.Err != syscall.EINTR {
		failed = os.NewSyscallError("serve", c.Err)
	}
	switch c.Tag & (1<<tagBits - 1) {
	case tagRead:
		s.reading = false
		switch {
		case failed != nil:
			s.fail(failed)
		case c.Err == 0 && c.N == 0:
			s.fail(s.end())
		case s.dropping:
			s.skip(int64(c.N))
		default:
			s.fail(s.take(s.buf[:c.N]))
		}
	case tagSend:
		k.sends--
		s.sending = false
		s.unsent = s.unsent[c.N:]
		s.blocked = len(s.unsent) > 0
		if failed != nil {
			s.fail(failed)
			s.unsent, s.out, s.blocked = nil, nil, false
		}
	case tagWrite:
		s.watching, s.blocked = false, false
	}
	k.step(s)
}

// fail ends a connection once its answers are written.
func (s *ringConn) fail(err error) {
	if err != nil && s.err == nil {
		s.over, s.err = true, err
	}
}

// step queues what a connection needs next.
func (k *ringServer) step(s *ringConn) {
	tag := func(what uint64) uint64 { return uint64(s.n)<<tagBits | what }
	if !s.sending && len(s.unsent) == 0 && len(s.out) > 0 {
		s.unsent, s.out, s.spare = s.out, s.spare[:0], s.out
	}
	switch {
	case s.sending || s.watching || len(s.unsent) == 0:
	case s.blocked:
		s.watching = true
		k.ring.Watch(s.fd, unix.POLLOUT, false, tag(tagWrite))
	default:
		s.sending = true
		k.sends++
		k.ring.Send(s.fd, s.unsent, tag(tagSend))
	}
	switch {
	case s.reading:
	case s.over:
		if s.sending || s.watching {
			return
		}
		if s.err == nil {
			s.err = io.EOF
		}
		k.ringConns[s.n] = nil
		k.free = append(k.free, s.n)
		k.active--
		k.d.ended(s.c, s.err)
		_ = unix.Close(s.fd) // after ended, nothing uses the descriptor
	case s.blocked: // do not read from a client that does not read its answers
	default:
		s.reading = true
		n := s.skippable()
		if s.dropping = n >= minDrop; s.dropping {
			k.ring.Discard(s.fd, int(min(n, 1<<30)), tag(tagRead))
		} else {
			k.ring.Read(s.fd, s.buf, tag(tagRead))
		}
	}
}
