package socket

import (
	"net"

	"golang.org/x/sys/unix"
)

// Own takes a plain TCP connection out of the hands of Go's runtime: fd is a
// descriptor of its own, and nc is closed. The caller closes fd. False: it is
// none, or there are no descriptors left, and nc is as it was.
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
	tcp.Close() // the connection lives on in the copy
	return fd, true
}
