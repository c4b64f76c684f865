package socket

import (
	"io"
	"net"
	"syscall"
	"time"
)

// A Stream reads from a plain non-blocking TCP socket that a waiter watches, and knows
// when the data that it read arrived. It belongs to the waiter's thread.
type Stream struct {
	w      *Waiter
	fd     int
	remote net.Addr
	stamp  int64 // when the last byte of the last read arrived, by the wall clock, in ns; 0: not known
	alone  bool  // not read by the waiter's thread
	msg    message
	segs   segmentCount
}

// stream returns a stream that reads a socket.
func (w *Waiter) stream(fd int, remote net.Addr) Stream {
	s := Stream{w: w, fd: fd, remote: remote}
	if w.untimed {
		return s
	}
	if !s.msg.setup(fd) {
		w.unstamped.Store(true)
	}
	s.segs.begin(fd)
	return s
}

// Read reads the available data: 0 bytes and no error if there is none.
func (s *Stream) Read(b []byte) (int, error) { return s.receive(b, len(b), 0) }

// Drop removes at most n bytes from the available data without copying them (MSG_TRUNC,
// tcp(7)): 0 bytes and no error if there are none.
func (s *Stream) Drop(n int) (int, error) { return s.receive(nil, n, syscall.MSG_TRUNC) }

func (s *Stream) receive(b []byte, n, flags int) (int, error) {
	for {
		n, stamp, e := s.msg.receive(uintptr(s.fd), b, n, flags)
		s.stamp = stamp
		switch {
		case e == syscall.EINTR:
		case e == syscall.EAGAIN:
			return 0, nil
		case e != 0:
			return 0, s.readError(e)
		case n == 0:
			return 0, io.EOF
		default:
			s.segs.add(int(n))
			s.segs.reads++
			return int(n), nil
		}
	}
}

func (s *Stream) readError(e syscall.Errno) error {
	return &net.OpError{Op: "read", Net: "tcp", Addr: s.remote, Err: e}
}

// received replaces a read if other code read n bytes of the stream, the last of them at
// stamp; 0: not known. whole says that they did not fill their buffer: otherwise the rest of
// a segment may follow.
func (s *Stream) received(n int, stamp int64, whole bool) {
	s.stamp = stamp
	s.segs.add(n)
	if whole {
		s.segs.reads++
	} else {
		s.segs.known = false
	}
}

// Arrival returns when the data of the last read arrived; now is a moment after it.
func (s *Stream) Arrival(now time.Duration) Arrival {
	a := Arrival{Last: now}
	if s.alone {
		return a
	}
	a.s = s
	w := s.w
	c := w.wallClock(now)
	first, last := time.Duration(s.stamp)-c.most, time.Duration(s.stamp)-c.least
	// Lost segments are repeated, and the timestamp belongs to data that came before.
	if s.stamp == 0 || c.set || last-first > clockSet || first < 0 || first > now || now-first > mostUnreadShared && s.segs.reordered(s.fd) {
		w.sharedUntil = now + sharedFor // the kernel also takes a moment to enable timestamps
		return a
	}
	// Data that the last check did not find arrived after or during it.
	a.first, a.Last, a.exact = first, min(now, max(last, w.found.looked)), true
	return a
}

// A wallOffset is by how much the wall clock is ahead of a waiter's clock.
type wallOffset struct {
	now         time.Duration // when it was measured, by the waiter's clock
	least, most time.Duration // its bounds
	set         bool          // the wall clock was set since the measurement before
}

// wallClock measures the offset once for each value of now, a moment that has just
// passed: answers that were taken from a ring together have the same. The kernel's
// timestamps are from the wall clock. An arrival that is computed with most is never too
// late, with least never too early. A call of time.Now reads the wall clock and then the
// monotonic one, which is cheaper than to read each by itself.
func (w *Waiter) wallClock(now time.Duration) *wallOffset {
	c := &w.wall
	known := !w.base.at.IsZero()
	if known && c.now == now {
		return c
	}
	if !known {
		w.base = baseOf(w.now)
	}
	t := time.Now()
	wall, at := time.Duration(t.UnixNano()), t.Sub(w.base.at)
	least, most := wall-at, wall-now
	if most-least > staleNow { // now is from before other answers
		most = time.Duration(time.Now().UnixNano()) - at + w.base.width
	}
	*c = wallOffset{now: now, least: least, most: most, set: known && (least-c.least).Abs() > clockSet}
	return c
}

// staleNow is from which age on it is worth it to read the wall clock again.
const staleNow = 500 * time.Nanosecond

// A clockBase is when a waiter's clock was 0, or up to width before.
type clockBase struct {
	at    time.Time
	width time.Duration
}

// baseOf compares a clock with that of the process. Of some attempts it takes the one that
// was interrupted least.
func baseOf(now func() time.Duration) (best clockBase) {
	for range 5 {
		before := time.Now()
		at := now()
		if width := time.Since(before); best.at.IsZero() || width < best.width {
			best = clockBase{before.Add(-at), width}
		}
	}
	return best
}

// clockSet is how far the wall clock may move between two reads without having been
// set: the most that slewing changes it in a second.
const clockSet = time.Millisecond

// Together records that answers to batches of different writes came in one read: the
// arrival is known only for the last, so answers must not be left unread for long now.
func (s *Stream) Together() {
	if !s.alone {
		s.w.sharedUntil = s.w.found.now + sharedFor
	}
}

// one reports whether all data of the last read arrived at once.
func (s *Stream) one() bool { return s.segs.one(s.fd) }

// since returns the earliest moment at which the data found by the last wait can have
// arrived. The previous check did not find it; after that check, the thread may have waited
// for a processor before it read the clock. If the last of the data had arrived before the
// wait, the thread did not sleep. If it slept, it was woken for the data, and then at most
// waited for a processor.
func (s *Stream) since(a Arrival) time.Duration {
	f := &s.w.found
	missed := f.looked
	if f.looked-f.began > ignoredDelay {
		missed = max(f.began, f.looked-s.w.waited())
	}
	switch {
	case a.exact && a.first < f.entered:
		return min(missed, a.first)
	case !f.woken || f.now-f.looked <= ignoredDelay || f.now-f.entered <= f.asleep:
		return missed
	}
	return max(missed, f.now-s.w.waited())
}

// waited returns how long the thread has waited for a processor in this wait and in those
// since it was last asked.
func (w *Waiter) waited() time.Duration {
	if w.found.waited < 0 {
		w.found.waited = w.runDelay.read()
	}
	return w.found.waited
}
