package socket

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A stamper is what a read with timestamps needs.
type stamper struct {
	raw     syscall.RawConn // nil: plain reads
	control []byte
	iov     unix.Iovec
	msg     unix.Msghdr

	// Between Read and its callback, which is made once so that a read allocates
	// nothing.
	n        int
	slept    bool // there was nothing at first
	err      syscall.Errno
	callback func(fd uintptr) bool
}

// setup asks the kernel for the time of each packet.
func (s *Stamped) setup() {
	tcp, ok := s.conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	if err != nil || failed != nil {
		return
	}
	s.raw, s.callback = raw, s.receive
	s.control = make([]byte, unix.CmsgSpace(int(unsafe.Sizeof(unix.Timespec{}))))
}

// Read reads what there is, as the connection's own Read does.
func (s *Stamped) Read(b []byte) (int, error) {
	s.stamp, s.slept = 0, false
	if s.raw == nil || len(b) == 0 {
		return s.conn.Read(b)
	}
	s.iov.Base = &b[0]
	s.iov.SetLen(len(b))
	err := s.raw.Read(s.callback)
	s.iov.Base = nil
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

// receive reads once; false: there is nothing yet.
func (s *Stamped) receive(fd uintptr) bool {
	for {
		s.msg.Iov, s.msg.Control = &s.iov, &s.control[0]
		s.msg.SetIovlen(1)
		s.msg.SetControllen(len(s.control))
		// unix.Recvmsg allocates room for an address.
		n, _, err := unix.Syscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&s.msg)), 0)
		switch err {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			s.slept = true
			return false
		case 0:
			s.stamp = stampOf(s.control[:s.msg.Controllen])
		}
		s.n, s.err = int(n), err
		return true
	}
}

// stampOf is the time in a control message, in ns; 0: there is none.
func stampOf(control []byte) int64 {
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

// Slept reports whether the last read found nothing at first; false where that is not
// known.
func (s *Stamped) Slept() bool { return s.slept }

// Empty reports whether nothing waits to be read; false where that is not known.
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
