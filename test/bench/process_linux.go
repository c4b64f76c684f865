package bench

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// sinkMethod says how the sink reads, for the table.
const sinkMethod = "recv(2) with MSG_TRUNC, which removes bytes from the queue without copying them, and a receive buffer of 4 MiB: as the discarding stand-in reads what it discards"

// readToEnd reads a connection to its end as the discarding stand-in does.
func readToEnd(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	_ = c.SetReadBuffer(4 << 20)
	var end error
	over := false
	try := func(fd uintptr) bool {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, 0, 256<<10, unix.MSG_TRUNC|unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == syscall.EAGAIN:
			return false
		case errno == syscall.EINTR:
		case errno != 0:
			over, end = true, os.NewSyscallError("recv", errno)
		case n == 0:
			over = true
		}
		return true
	}
	for !over {
		if err := raw.Read(try); err != nil {
			return err
		}
	}
	return end
}
