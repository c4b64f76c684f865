package socket

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A message contains the buffers for a read with timestamps.
type message struct {
	control []byte // nil: timestamps are not enabled
	iov     unix.Iovec
	msg     unix.Msghdr
}

// setup enables timestamps of packets; false if the kernel does not support them.
func (m *message) setup(fd int) bool {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) != nil {
		return false
	}
	m.control = make([]byte, StampSpace)
	return true
}

// receive reads most bytes once from a non-blocking socket. stamp is when the last byte
// arrived, by the wall clock, in ns; 0: not known.
func (m *message) receive(fd uintptr, b []byte, most, flags int) (n uintptr, stamp int64, e syscall.Errno) {
	if m.control == nil {
		n, _, e = syscall.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(most), uintptr(flags), 0, 0)
		return n, 0, e
	}
	m.iov.Base = unsafe.SliceData(b)
	m.iov.SetLen(most)
	m.msg.Iov, m.msg.Control = &m.iov, unsafe.SliceData(m.control)
	m.msg.SetIovlen(1)
	m.msg.SetControllen(len(m.control))
	// A raw call, because unix.Recvmsg allocates memory for an address.
	n, _, e = syscall.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&m.msg)), uintptr(flags))
	m.iov.Base = nil
	if e == 0 {
		stamp = StampOf(m.control[:m.msg.Controllen])
	}
	return n, stamp, e
}

// A stamper contains the state for reading a connection of the runtime with timestamps.
type stamper struct {
	raw syscall.RawConn // nil: plain reads
	message

	// State between Read and its callback, which is created once so that a read
	// allocates nothing.
	b        []byte
	n        int
	slept    bool // nothing could be read at first
	err      syscall.Errno
	callback func(fd uintptr) bool
}

// setup enables timestamps of packets.
func (s *Stamped) setup() {
	tcp, ok := s.conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	supported := false
	if err = raw.Control(func(fd uintptr) { supported = s.message.setup(int(fd)) }); err != nil || !supported {
		return
	}
	s.raw, s.callback = raw, s.receive
}

// Read reads like the Read of the connection.
func (s *Stamped) Read(b []byte) (int, error) {
	s.stamp, s.slept = 0, false
	if s.raw == nil || len(b) == 0 {
		return s.conn.Read(b)
	}
	s.b = b
	err := s.raw.Read(s.callback)
	s.b = nil
	switch {
	case err != nil:
		return 0, err
	case s.err != 0:
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: s.conn.LocalAddr(), Addr: s.conn.RemoteAddr(), Err: os.NewSyscallError("recvmsg", s.err)}
	case s.n == 0:
		return 0, io.EOF
	}
	return s.n, nil
}

// receive reads once; false if there is nothing to read yet.
func (s *Stamped) receive(fd uintptr) bool {
	for {
		n, stamp, err := s.message.receive(fd, s.b, len(s.b), 0)
		switch err {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			s.slept = true
			return false
		}
		s.n, s.stamp, s.err = int(n), stamp, err
		return true
	}
}

// StampSpace is the size of a control message with a time: its header (a length, a
// level and a type) and a timespec.
const StampSpace = unix.SizeofCmsghdr + int(unsafe.Sizeof(unix.Timespec{}))

// StampOf returns the time in a control message, in ns; 0: none.
func StampOf(control []byte) int64 {
	if len(control) < unix.CmsgLen(int(unsafe.Sizeof(unix.Timespec{}))) {
		return 0
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SCM_TIMESTAMPNS {
		return 0
	}
	ts := (*unix.Timespec)(unsafe.Pointer(&control[unix.CmsgLen(0)]))
	return ts.Nano()
}

// Slept reports whether the last read found nothing at first; false if that is not
// known.
func (s *Stamped) Slept() bool { return s.slept }

// Empty reports whether nothing waits to be read; false if that is not known.
func (s *Stamped) Empty() bool {
	if s.raw == nil {
		return false
	}
	left := 1
	if err := s.raw.Control(func(fd uintptr) {
		if n, err := unix.IoctlGetInt(int(fd), unix.SIOCINQ); err == nil {
			left = n
		}
	}); err != nil {
		return false
	}
	return left == 0
}
