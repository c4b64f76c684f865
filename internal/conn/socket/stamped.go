package socket

import (
	"net"
	"time"
)

// A Stamped reads from a connection and knows when the data that it read had arrived,
// if the system reports it: on Linux, for plain TCP. It belongs to one goroutine;
// deadlines of the connection apply.
type Stamped struct {
	conn  net.Conn
	stamp int64 // when the last byte of the last read arrived, by the wall clock, in ns; 0: not known
	stamper
}

// NewStamped returns a Stamped for a connection.
func NewStamped(conn net.Conn) *Stamped {
	s := &Stamped{conn: conn}
	s.setup()
	return s
}

// Arrived returns when the last byte of the last read arrived, on the clock that now
// comes from; 0 if that is not known. A time outside since and now, because the wall
// clock was set, is discarded.
func (s *Stamped) Arrived(since, now time.Duration) time.Duration {
	if s.stamp == 0 {
		return 0
	}
	// Read a moment after now: the difference makes the arrival earlier, never later.
	at := now - time.Duration(time.Now().UnixNano()-s.stamp)
	if at < since || at > now {
		return 0
	}
	return at
}

// An Arrival describes when the data of a read arrived.
type Arrival struct {
	Last  time.Duration // when all of it had arrived; if not known, the time of the read
	first time.Duration // earliest possible arrival of the last byte
	exact bool          // both are known
	s     *Stream       // nil: not read by a waiter's thread
}

// First returns the earliest moment at which any of the given number of answers that
// the read completed can have arrived; 0: not known. more means that the read ended
// with a part of another answer.
func (a Arrival) First(answers int, more bool) time.Duration {
	switch {
	case a.s == nil:
		return 0
	case a.exact && (answers == 1 && !more || a.s.one()):
		return a.first
	}
	return a.s.since(a)
}
