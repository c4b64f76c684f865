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

// A grams writes datagrams to a connected socket, many in one system call: a
// call for each would cost more than all else together. Not safe for concurrent
// use.
type grams struct {
	raw      syscall.RawConn
	vec      [mostGrams]mmsghdr
	iov      [mostGrams]unix.Iovec
	oob      [512]byte
	refusals atomic.Uint64 // errors that came back for datagrams sent before

	// Between send and its callback, which is made once so that a write
	// allocates nothing.
	n        int
	wait     bool
	wrote    int
	err      error
	callback func(fd uintptr) bool
}

func newGrams(nc *net.UDPConn) (*grams, error) {
	raw, err := nc.SyscallConn()
	if err != nil {
		return nil, err
	}
	g := &grams{raw: raw}
	g.callback = g.sendmmsg
	for i := range g.vec {
		g.vec[i].hdr.Iov = &g.iov[i]
		g.vec[i].hdr.SetIovlen(1)
	}
	var soft error
	err = raw.Control(func(fd uintptr) {
		// Without a queue of errors, one that interrupts a sendmmsg is lost.
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

// send writes those of all from the next one on, as many as the system takes
// now, or, with wait, one at least, and returns how many went. An error is that
// of the datagram after those: it was not sent, and the next one may be. None
// and no error: the socket is full.
func (g *grams) send(buf []byte, all []gram, next int, wait bool) (int, error) {
	start := 0
	if next > 0 {
		start = all[next-1].end
	}
	g.n = min(len(all)-next, mostGrams)
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

// sendmmsg is called by the runtime with the descriptor, which is non-blocking;
// false makes it wait until it is writable.
func (g *grams) sendmmsg(fd uintptr) bool {
	for {
		n, _, e := syscall.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&g.vec)), uintptr(g.n), 0, 0, 0)
		switch e {
		case 0:
			g.wrote = int(n)
			if g.wrote < g.n {
				g.err = g.came(int(fd))
			}
			return true
		case syscall.EINTR:
		case syscall.EAGAIN:
			return !g.wait
		default:
			g.err = e
			_ = g.came(int(fd))
			return true
		}
	}
}

// came empties the queue of errors and returns the last of them. Where sending
// ended early, one of them is why: the kernel drops the error that interrupts a
// sendmmsg, and keeps this one.
func (g *grams) came(fd int) (last error) {
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

// extendedError finds the error in a control message of the queue of errors
// (struct sock_extended_err, ip(7)); 0: there is none.
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
