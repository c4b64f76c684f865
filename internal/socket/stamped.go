package socket

import (
	"net"
	"time"
)

// A Stamped reads from a connection and knows when what it read had arrived, where
// the system says so: Linux, of plain TCP. It belongs to one goroutine; deadlines of
// the connection hold.
type Stamped struct {
	conn  net.Conn
	stamp int64 // when the last byte of the last read arrived, by the wall clock, in ns; 0: not known
	stamper
}

// NewStamped readies a connection.
func NewStamped(conn net.Conn) *Stamped {
	s := &Stamped{conn: conn}
	s.setup()
	return s
}

// Arrived is when the last byte of the last read arrived, on the clock that says now;
// 0 where that is not known. What does not lie between since and now, because the wall
// clock was set meanwhile, is not believed.
func (s *Stamped) Arrived(since, now time.Duration) time.Duration {
	if s.stamp == 0 {
		return 0
	}
	// A moment after now: what lies between makes the arrival earlier, never later.
	at := now - time.Duration(time.Now().UnixNano()-s.stamp)
	if at < since || at > now {
		return 0
	}
	return at
}

// An Arrival says when what a read returned arrived.
type Arrival struct {
	Last  time.Duration // all of it was there; the read itself, where no more is known
	first time.Duration // the last byte cannot have come earlier
	exact bool          // the two are known
	s     *Stream       // nil: no waiter's thread read it
}

// First is the earliest moment at which any of so many answers can have arrived that
// the read completed; 0: not known. more says that it ended in a part of another.
func (a Arrival) First(answers int, more bool) time.Duration {
	switch {
	case a.s == nil:
		return 0
	case a.exact && (answers == 1 && !more || a.s.one()):
		return a.first
	}
	return a.s.since(a)
}
