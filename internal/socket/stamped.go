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
