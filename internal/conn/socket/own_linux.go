package socket

import (
	"net"

	"golang.org/x/sys/unix"
)

// Own takes a plain TCP connection away from the Go runtime: fd is a duplicate
// descriptor, and nc is closed. The caller closes fd. It returns false if nc is not a
// plain TCP connection, or no descriptors are left; nc is then unchanged.
func Own(nc net.Conn) (fd int, ok bool) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return -1, false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return -1, false
	}
	fd = -1
	if cerr := raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }); cerr != nil || err != nil {
		return -1, false
	}
	tcp.Close() // the duplicate keeps the connection open
	return fd, true
}
