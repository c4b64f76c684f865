package socket

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A segmentCount determines whether a read returned exactly one segment: then all its
// bytes arrived together, and the kernel's time of the last byte applies to all.
type segmentCount struct {
	read  uint64 // bytes read so far, including those before the connection was taken
	reads uint32 // reads that returned data since the segments were counted
	count uint32 // data segments received at that time
	known bool   // everything received had been read at that time

	outOfOrder uint32 // segments received out of order, at the last check

	// What the kernel counted after the last read. It is asked at most once for each read.
	asked, answered bool
	received        uint64 // bytes
	segments, late  uint32 // data segments, and those out of order
}

// add counts a read of n bytes.
func (s *segmentCount) add(n int) {
	s.read += uint64(n)
	s.asked = false
}

// begin counts what was received before the first read.
func (s *segmentCount) begin(fd int) {
	if s.ask(fd) {
		s.read, s.count, s.outOfOrder, s.known = s.received, s.segments, s.late, true
	}
}

// one reports whether the last read returned exactly one segment. False: it may have
// been more.
func (s *segmentCount) one(fd int) bool {
	known, reads, count := s.known, s.reads, s.count
	s.reads = 0
	if s.known = s.ask(fd) && s.received == s.read; !s.known {
		return false // newer data would be counted for this read and missing for the next
	}
	s.count = s.segments
	// Each earlier read returned at least one segment.
	return !s.moreOutOfOrder() && known && s.count-count == reads
}

// reordered reports whether segments may have arrived out of order since the last call:
// the timestamp of a read belongs to its last bytes, and earlier bytes may have arrived
// later.
func (s *segmentCount) reordered(fd int) bool {
	return !s.ask(fd) || s.moreOutOfOrder()
}

// ask queries the kernel once after each read.
func (s *segmentCount) ask(fd int) bool {
	if !s.asked {
		var info unix.TCPInfo
		s.asked, s.answered = true, tcpInfo(fd, &info)
		s.received, s.segments, s.late = info.Bytes_received, info.Data_segs_in, info.Rcv_ooopack
	}
	return s.answered
}

// moreOutOfOrder reports whether the kernel counts more segments out of order than at
// the last check.
func (s *segmentCount) moreOutOfOrder() bool {
	before := s.outOfOrder
	s.outOfOrder = s.late
	return s.outOfOrder != before
}

// tcpInfo queries the kernel, by a call that never blocks.
func tcpInfo(fd int, info *unix.TCPInfo) bool {
	size := uint32(unsafe.Offsetof(info.Snd_wnd))
	want := size
	_, _, e := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(info)), uintptr(unsafe.Pointer(&size)), 0)
	return e == 0 && size == want // otherwise the kernel is older than 5.4
}
