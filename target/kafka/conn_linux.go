package kafka

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A vector is the pieces of one writev.
type vector struct {
	iov   []unix.Iovec
	segs  net.Buffers // of connections that are not plain TCP
	plain bool

	// Between send and its callback, which is made once so that a write
	// allocates nothing.
	wait     bool
	wrote    int
	err      error
	callback func(fd uintptr) bool
}

// mostPieces is the kernel's own limit (UIO_MAXIOV).
const mostPieces = 1024

func (k *link) setup() {
	if tcp, ok := k.nc.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			k.raw = raw
			k.vec.plain = true
			k.vec.iov = make([]unix.Iovec, 0, mostPieces)
			k.vec.callback = k.writev
		}
	}
}

func (v *vector) reset() {
	v.iov = v.iov[:0]
	v.segs = v.segs[:0]
}

// add adds the pieces but for their first skip bytes, as far as there is room,
// and returns how many bytes it added.
func (v *vector) add(segs [][]byte, skip int) int {
	n := 0
	for _, seg := range segs {
		if skip >= len(seg) {
			skip -= len(seg)
			continue
		}
		seg = seg[skip:]
		skip = 0
		if v.plain {
			if len(v.iov) == mostPieces {
				break
			}
			v.iov = append(v.iov, unix.Iovec{Base: &seg[0], Len: uint64(len(seg))})
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

// send writes the vector: without wait, what the socket takes now; with it, at
// least a byte.
func (k *link) send(wait bool) (int, error) {
	v := &k.vec
	if !v.plain {
		return k.sendBlocking()
	}
	v.wait, v.wrote, v.err = wait, 0, nil
	if err := k.raw.Write(v.callback); err != nil {
		return v.wrote, err
	}
	return v.wrote, v.err
}

// writev is called by the runtime with the descriptor, which is non-blocking;
// false makes it wait until it is writable.
func (k *link) writev(fd uintptr) bool {
	v := &k.vec
	for {
		k.attempt.Store(int64(k.l.s.p.sink.Now()))
		n, _, e := syscall.Syscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(unsafe.SliceData(v.iov))), uintptr(len(v.iov)))
		switch e {
		case 0:
			v.wrote = int(n)
			return true
		case syscall.EINTR:
		case syscall.EAGAIN:
			return !v.wait
		default:
			v.err = &net.OpError{Op: "write", Net: "tcp", Addr: k.nc.RemoteAddr(), Err: e}
			return true
		}
	}
}
