package live

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// roundTrip returns the round trip of a connection as the kernel has measured it (tcp(7),
// TCP_INFO): the smoothed one, with its mean deviation.
func roundTrip(c net.Conn) (time.Duration, bool) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return 0, false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, false
	}
	var info *unix.TCPInfo
	if e := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); e != nil || err != nil || info.Rtt == 0 {
		return 0, false
	}
	return time.Duration(info.Rtt+info.Rttvar) * time.Microsecond, true
}
