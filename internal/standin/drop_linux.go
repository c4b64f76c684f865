package standin

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Dropper drops bytes of one connection. Only one goroutine at a time may use
// it: the one that reads.
type Dropper struct {
	raw syscall.RawConn

	// Arguments and results of recv, which RawConn calls. As fields they need no
	// closure and no allocation.
	recvFunc func(fd uintptr) bool
	want     int
	got      int
	errno    syscall.Errno
}

func newDropper(c *net.TCPConn) *Dropper {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	d := &Dropper{raw: raw}
	d.recvFunc = d.recv
	return d
}

// Drop waits for n bytes and drops them. It returns io.ErrUnexpectedEOF if the
// connection ends before.
func (d *Dropper) Drop(n int64) error {
	for n > 0 {
		d.want = int(min(n, mostDropped))
		if err := d.raw.Read(d.recvFunc); err != nil {
			return err
		}
		if d.errno != 0 {
			return os.NewSyscallError("recv", d.errno)
		}
		if d.got == 0 {
			return io.ErrUnexpectedEOF
		}
		n -= int64(d.got)
	}
	return nil
}

// recv removes bytes from a TCP socket's queue without copying them (MSG_TRUNC, tcp(7),
// since Linux 2.4).
func (d *Dropper) recv(fd uintptr) bool {
	for {
		// A raw system call: it never blocks, so the scheduler need not be notified.
		got, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, 0, uintptr(d.want), unix.MSG_TRUNC|unix.MSG_DONTWAIT, 0, 0)
		if errno != syscall.EINTR {
			d.got, d.errno = int(got), errno
			return errno != syscall.EAGAIN // false: let RawConn wait until it is readable
		}
	}
}

// CanDrop reports whether the kernel drops bytes. It tries that once, on a
// loopback connection: a kernel that emulates Linux may ignore the flag.
var CanDrop = sync.OnceValue(func() bool {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return false
	}
	defer ln.Close()
	return tryDrop(ln)
})

// trialTimeout bounds the trial.
const trialTimeout = 10 * time.Second

// tryDrop tries to drop bytes on a connection to a listener. Other clients may
// connect to it as well, such as those of a server that had this port before.
func tryDrop(ln net.Listener) bool {
	deadline := time.Now().Add(trialTimeout)
	if err := ln.(*net.TCPListener).SetDeadline(deadline); err != nil {
		return false
	}
	out, err := net.DialTimeout("tcp", ln.Addr().String(), trialTimeout)
	if err != nil {
		return false
	}
	defer out.Close()
	for {
		in, err := ln.Accept()
		if err != nil {
			return false
		}
		defer in.Close()
		if in.RemoteAddr().String() != out.LocalAddr().String() {
			continue // another client
		}
		if err := in.SetDeadline(deadline); err != nil {
			return false
		}
		if _, err := out.Write([]byte("dropped kept")); err != nil {
			return false
		}
		d := newDropper(in.(*net.TCPConn))
		if d == nil || d.Drop(int64(len("dropped "))) != nil {
			return false
		}
		var rest [4]byte
		_, err = io.ReadFull(in, rest[:])
		return err == nil && string(rest[:]) == "kept"
	}
}
