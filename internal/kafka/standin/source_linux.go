package standin

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"carronade/internal/standin"
)

// newSource chooses how a connection is read.
func newSource(c *conn, nc net.Conn) source {
	if tc, ok := nc.(*net.TCPConn); ok && c.front.log != nil {
		if raw, err := tc.SyscallConn(); err == nil {
			// A large receive buffer means fewer wake-ups per batch.
			_ = tc.SetReadBuffer(4 << 20)
			s := &rawSource{conn: c, raw: raw, drop: standin.CanDrop()}
			s.recvFunc = s.recv
			return s
		}
	}
	return &plainSource{conn: c, nc: nc}
}

// A rawSource reads a TCP socket without blocking while it has bytes, and writes
// the accumulated answers before it blocks. It drops bytes inside the kernel:
// recv(2) with MSG_TRUNC removes them from a TCP socket's queue without copying
// them (tcp(7), since Linux 2.4). So the sink costs almost nothing next to the
// generator that it measures.
type rawSource struct {
	conn *conn
	raw  syscall.RawConn
	drop bool

	// Arguments and results of recv, which RawConn calls. As fields they need no
	// closure and no allocation.
	recvFunc func(fd uintptr) bool
	p        unsafe.Pointer
	n        int
	flags    int
	got      int
	errno    syscall.Errno
	waiting  bool

	scratch []byte
}

// recv is one non-blocking recv(2). It is a raw system call: it never blocks, so
// the scheduler need not be notified.
func (s *rawSource) recv(fd uintptr) bool {
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(s.p), uintptr(s.n),
			uintptr(s.flags|unix.MSG_DONTWAIT), 0, 0)
		switch errno {
		case 0:
			s.got, s.errno = int(n), 0
			return true
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			if s.waiting {
				return false // let RawConn wait until it is readable
			}
			s.got, s.errno = 0, errno
			return true
		default:
			s.got, s.errno = 0, errno
			return true
		}
	}
}

func (s *rawSource) call(p unsafe.Pointer, n, flags int) (int, error) {
	s.p, s.n, s.flags, s.waiting = p, n, flags, false
	if len(s.conn.out) == 0 {
		s.waiting = true // nothing to write first
	}
	for {
		if err := s.raw.Read(s.recvFunc); err != nil {
			return 0, err
		}
		switch {
		case s.errno == syscall.EAGAIN && !s.waiting:
			if err := s.conn.flush(); err != nil {
				return 0, err
			}
			s.waiting = true
		case s.errno != 0:
			return 0, os.NewSyscallError("recv", s.errno)
		case s.got == 0:
			return 0, io.EOF
		default:
			return s.got, nil
		}
	}
}

func (s *rawSource) read(p []byte) (int, error) {
	return s.call(unsafe.Pointer(unsafe.SliceData(p)), len(p), 0)
}

func (s *rawSource) discard(n int) (int, error) {
	if s.drop {
		return s.call(nil, n, unix.MSG_TRUNC)
	}
	if s.scratch == nil {
		s.scratch = make([]byte, 256<<10)
	}
	return s.read(s.scratch[:min(n, len(s.scratch))])
}
