package socket

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A segmentCount knows whether a read returned just one segment: then all that it
// returned arrived together, and the kernel's time of its last byte is that of all.
type segmentCount struct {
	read  uint64 // bytes read so far, and those before the connection was taken
	reads uint32 // reads that returned something since the segments were counted
	count uint32 // data segments received when they were
	known bool   // and everything received was read then
	info  unix.TCPInfo

	outOfOrder uint32 // segments that came out of order, when that was last looked at
}

// begin counts what was received before the first read.
func (s *segmentCount) begin(fd int) {
	if s.ask(fd) {
		s.read, s.count, s.outOfOrder, s.known = s.info.Bytes_received, s.info.Data_segs_in, s.info.Rcv_ooopack, true
	}
}

// one reports whether the last read returned one segment. False: it may have been more.
func (s *segmentCount) one(fd int) bool {
	known, reads, count := s.known, s.reads, s.count
	s.reads = 0
	if s.known = s.ask(fd) && s.info.Bytes_received == s.read; !s.known {
		return false // what came since would be counted with this read, and missed in the next
	}
	s.count = s.info.Data_segs_in
	// Each read before this one returned a segment at least.
	return !s.moreOutOfOrder() && known && s.count-count == reads
}

// reordered reports whether segments may have come out of order since it was last asked:
// the stamp of a read is of its last bytes, and those before may have come later.
func (s *segmentCount) reordered(fd int) bool {
	return !s.ask(fd) || s.moreOutOfOrder()
}

// moreOutOfOrder reports whether the last answer of the kernel counts more segments out of
// order than the one before it that was looked at.
func (s *segmentCount) moreOutOfOrder() bool {
	before := s.outOfOrder
	s.outOfOrder = s.info.Rcv_ooopack
	return s.outOfOrder != before
}

// ask asks the kernel, by a call that never blocks.
func (s *segmentCount) ask(fd int) bool {
	size := uint32(unsafe.Offsetof(s.info.Snd_wnd))
	want := size
	_, _, e := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&s.info)), uintptr(unsafe.Pointer(&size)), 0)
	return e == 0 && size == want // else the kernel is older than 5.4
}
