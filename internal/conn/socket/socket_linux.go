package socket

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A vector contains the pieces of one writev.
type vector struct {
	iov    []unix.Iovec // grows to what the largest write needed
	segs   net.Buffers  // for connections that are not plain TCP
	raw    syscall.RawConn
	polled *Conn                  // replaces raw
	done   func(n int, err error) // of Later

	// State between send and its callback, which is created once so that a write
	// allocates nothing.
	wait     bool
	wrote    int
	err      error
	callback func(fd uintptr) bool
}

func (w *Writer) setup() {
	if c, ok := w.conn.(*Conn); ok {
		w.polled = c
		return
	}
	tcp, ok := w.conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	w.raw = raw
	w.callback = w.writev
}

func (v *vector) direct() bool { return v.raw != nil || v.polled != nil }

// Reset removes the pieces.
func (v *vector) Reset() {
	v.iov = v.iov[:0]
	v.segs = v.segs[:0]
}

// Add adds the pieces without their first skip bytes, as far as there is room, and
// returns how many bytes it added. The pieces must not change until Write returns.
func (v *vector) Add(segs [][]byte, skip int) int {
	n := 0
	for _, seg := range segs {
		if skip >= len(seg) {
			skip -= len(seg)
			continue
		}
		seg = seg[skip:]
		skip = 0
		if v.direct() {
			if len(v.iov) == mostPieces {
				break
			}
			piece := unix.Iovec{Base: &seg[0]}
			piece.SetLen(len(seg))
			v.iov = append(v.iov, piece)
		} else {
			if len(v.segs) == mostPieces {
				break
			}
			v.segs = append(v.segs, seg)
		}
		n += len(seg)
	}
	return n
}

// send writes the vector: without wait, what the socket accepts now; with it, at least
// one byte.
func (w *Writer) send(wait bool) (int, error) {
	w.wait, w.wrote, w.err = wait, 0, nil
	defer clear(w.iov) // the pieces may be borrowed
	if w.polled != nil {
		for !w.writev(uintptr(w.polled.fd)) {
			w.polled.writable()
		}
		return w.wrote, w.err
	}
	if err := w.raw.Write(w.callback); err != nil {
		return w.wrote, err
	}
	return w.wrote, w.err
}

// writev is called by the runtime with the descriptor, which is non-blocking; false
// makes the runtime wait until it is writable.
func (w *Writer) writev(fd uintptr) bool {
	for {
		w.began.Store(int64(w.now()))
		call := syscall.Syscall6
		if w.polled != nil && !w.wait {
			// Hide the call from the Go scheduler, which would take a write that the
			// server's threads interrupt for a wait, and hand the processor over. It
			// does not block.
			call = syscall.RawSyscall6
		}
		number, at, size := uintptr(syscall.SYS_WRITEV), unsafe.Pointer(unsafe.SliceData(w.iov)), uintptr(len(w.iov))
		if len(w.iov) == 1 { // often the case: sendto is cheaper than writev, and than write
			number, at, size = unix.SYS_SENDTO, unsafe.Pointer(w.iov[0].Base), uintptr(w.iov[0].Len)
		}
		n, _, e := call(number, fd, uintptr(at), size, unix.MSG_NOSIGNAL, 0, 0) // the last three for sendto only
		switch e {
		case 0:
			w.wrote = int(n)
			return true
		case syscall.EINTR:
		case syscall.EAGAIN:
			return !w.wait
		default:
			w.err = &net.OpError{Op: "write", Net: "tcp", Addr: w.conn.RemoteAddr(), Err: e}
			return true
		}
	}
}
