package riemann

import (
	"encoding/binary"
	"net"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A mmsghdr is the kernel's struct of that name (sendmmsg(2)).
type mmsghdr struct {
	hdr unix.Msghdr
	_   uint32 // set to the bytes sent
}

// A datagramWriter writes datagrams to a connected socket, many in one system
// call: one call per datagram would cost more than everything else together. It
// is not safe for concurrent use.
type datagramWriter struct {
	raw      syscall.RawConn
	vec      [mostDatagrams]mmsghdr
	iov      [mostDatagrams]unix.Iovec
	oob      [512]byte
	refusals atomic.Uint64 // errors that came back for datagrams sent before

	// Arguments and results of the callback, which is made once so that send
	// allocates nothing.
	n        int
	wait     bool
	wrote    int
	err      error
	callback func(fd uintptr) bool
}

func newDatagramWriter(nc *net.UDPConn) (*datagramWriter, error) {
	raw, err := nc.SyscallConn()
	if err != nil {
		return nil, err
	}
	g := &datagramWriter{raw: raw}
	g.callback = g.sendmmsg
	for i := range g.vec {
		g.vec[i].hdr.Iov = &g.iov[i]
		g.vec[i].hdr.SetIovlen(1)
	}
	var soft error
	err = raw.Control(func(fd uintptr) {
		// Without an error queue, an error that interrupts sendmmsg is lost.
		soft = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_RECVERR, 1)
		if e := unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_RECVERR, 1); e == nil {
			soft = nil
		}
	})
	if err != nil {
		return nil, err
	}
	return g, soft
}

// send writes the datagrams all[next:], as many as the system accepts now, with
// wait at least one, and returns how many it wrote. An error belongs to the
// datagram after those: it was not sent, but the next one may be. Zero without
// an error means that the socket is full.
func (g *datagramWriter) send(buf []byte, all []datagram, next int, wait bool) (int, error) {
	start := 0
	if next > 0 {
		start = all[next-1].end
	}
	g.n = min(len(all)-next, mostDatagrams)
	for i := range g.n {
		end := all[next+i].end
		g.iov[i].Base = unsafe.SliceData(buf[start:])
		g.iov[i].SetLen(end - start)
		start = end
	}
	g.wait, g.wrote, g.err = wait, 0, nil
	if err := g.raw.Write(g.callback); err != nil {
		return g.wrote, err
	}
	return g.wrote, g.err
}

// sendmmsg is called by the runtime with the non-blocking descriptor. If it
// returns false, the runtime waits until the descriptor is writable and calls it
// again.
func (g *datagramWriter) sendmmsg(fd uintptr) bool {
	for {
		n, _, e := syscall.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&g.vec)), uintptr(g.n), 0, 0, 0)
		switch e {
		case 0:
			g.wrote = int(n)
			if g.wrote < g.n {
				g.err = g.drainErrors(int(fd))
			}
			return true
		case syscall.EINTR:
		case syscall.EAGAIN:
			return !g.wait
		default:
			g.err = e
			_ = g.drainErrors(int(fd))
			return true
		}
	}
}

// drainErrors empties the error queue and returns its last error. If sending
// ended early, the cause is in the queue: the kernel discards the error that
// interrupts sendmmsg, but keeps this one.
func (g *datagramWriter) drainErrors(fd int) (last error) {
	for {
		_, n, _, _, err := unix.Recvmsg(fd, nil, g.oob[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if err != nil {
			return last
		}
		g.refusals.Add(1)
		if no := extendedError(g.oob[:n]); no != 0 {
			last = no
		}
	}
}

// extendedError finds the error in a control message of the error queue (struct
// sock_extended_err, ip(7)); 0: none.
func extendedError(oob []byte) syscall.Errno {
	for len(oob) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return 0
		}
		v4 := h.Level == unix.SOL_IP && h.Type == unix.IP_RECVERR
		v6 := h.Level == unix.SOL_IPV6 && h.Type == unix.IPV6_RECVERR
		if (v4 || v6) && len(data) >= 4 {
			return syscall.Errno(binary.NativeEndian.Uint32(data))
		}
		oob = rest
	}
	return 0
}
