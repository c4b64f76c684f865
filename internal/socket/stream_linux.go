package socket

import (
	"io"
	"net"
	"syscall"
	"time"
)

// A Stream reads from a plain TCP socket that does not block and that a waiter watches,
// and knows when what it read arrived. It belongs to the waiter's thread.
type Stream struct {
	w      *Waiter
	fd     int
	remote net.Addr
	stamp  int64 // when the last byte of the last read arrived, by the wall clock, in ns; 0: not known
	alone  bool  // it is not read by the waiter's thread
	msg    message
	segs   segmentCount
}

// Stream readies a socket to be read.
func (w *Waiter) Stream(fd int, remote net.Addr) Stream {
	s := Stream{w: w, fd: fd, remote: remote}
	if !s.msg.setup(fd) {
		w.unstamped.Store(true)
	}
	s.segs.begin(fd)
	return s
}

// Read reads what is there: 0 bytes and no error when there is nothing.
func (s *Stream) Read(b []byte) (int, error) {
	for {
		n, stamp, e := s.msg.receive(uintptr(s.fd), b)
		s.stamp = stamp
		switch {
		case e == syscall.EINTR:
		case e == syscall.EAGAIN:
			return 0, nil
		case e != 0:
			return 0, &net.OpError{Op: "read", Net: "tcp", Addr: s.remote, Err: e}
		case n == 0:
			return 0, io.EOF
		default:
			s.segs.read += uint64(n)
			s.segs.reads++
			return int(n), nil
		}
	}
}

// Received stands for a Read where something else than this stream received n bytes, the
// last of them at stamp; 0: not known.
func (s *Stream) Received(n int, stamp int64) {
	s.stamp = stamp
	s.segs.read += uint64(n)
	s.segs.reads++
}

// Arrival says when what the last read returned arrived; now is a moment after it.
func (s *Stream) Arrival(now time.Duration) Arrival {
	a := Arrival{Last: now}
	if s.alone {
		return a
	}
	a.s = s
	w := s.w
	// The wall clock, of which stamps are, is read on both sides of ours: by the first
	// an arrival is never too early, by the second never too late.
	before := time.Now().UnixNano()
	at := w.now()
	after := time.Now().UnixNano()
	offset, set := time.Duration(before)-at, false
	if w.offset != 0 {
		set = (offset - w.offset).Abs() > clockSet
	}
	w.offset = offset
	first, last := at-time.Duration(after-s.stamp), at-time.Duration(before-s.stamp)
	// What was lost on the way is repeated, and the stamp is that of what came before.
	if s.stamp == 0 || set || last-first > clockSet || first < 0 || first > now || now-first > haste && s.segs.reordered(s.fd) {
		w.hasty = now + hastyFor // the kernel takes a moment to begin, too
		return a
	}
	// What the last look did not find came after it, or while it was under way.
	a.first, a.Last, a.exact = first, min(now, max(last, w.found.looked)), true
	return a
}

// clockSet is by how much the wall clock may move between two reads without having been
// set: what it is slewed by in a second.
const clockSet = time.Millisecond

// Together notes that answers to batches of different writes came in one read: only of
// the last is it known when it arrived, so that they are not left unread for long now.
func (s *Stream) Together() {
	if !s.alone {
		s.w.hasty = s.w.found.now + hastyFor
	}
}

// one reports whether all that the last read returned arrived at once.
func (s *Stream) one() bool { return s.segs.one(s.fd) }

// since is the earliest moment at which what the last wait found can have arrived. Where
// the last of it was there before that wait, the thread did not sleep.
func (s *Stream) since(a Arrival) time.Duration {
	f := &s.w.found
	if a.exact && a.first < f.entered {
		return f.looked
	}
	if f.since < 0 {
		f.since = f.looked
		if f.woken {
			f.since = s.w.gap.Since(f.looked, f.entered, f.now, f.asleep)
		}
	}
	return f.since
}
