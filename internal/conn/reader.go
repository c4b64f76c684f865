package conn

import (
	"net"
	"time"

	"carronade/internal/conn/socket"
)

// Sizes of the buffers for reading.
const (
	// leastRead is the first buffer of a connection that a goroutine reads, in bytes. It
	// doubles, up to mostRead, whenever a read fills it.
	leastRead = 4 << 10
	mostRead  = socket.ScratchSize
)

// A Reader reads the answers of a connection. It is for one goroutine.
type Reader struct {
	Conn net.Conn
	Now  func() time.Duration
	// Received handles the answers that b begins with, and returns how many bytes they
	// have; the rest, the beginning of another answer, is read again with what follows
	// it. An error ends the connection.
	Received func(b []byte, came socket.Arrival) (used int, err error)
	// Ended is called with the reason when the connection has ended, on the thread that
	// found it: an error of Received, or of a read.
	Ended func(err error)
	// Read is called with the number of bytes that were read.
	Read  func(n int)
	Small bool // reads usually find only a small answer

	polled *socket.Conn // nil: a goroutine reads it
	buf    []byte       // borrowed, or the goroutine's own
	have   int          // bytes of it that were read and not used
}

// Run reads until the connection ends. A poller reads a connection that it has taken,
// on its thread and into its buffer. Otherwise this goroutine reads.
func (r *Reader) Run() {
	ended := make(chan struct{})
	if r.Start(func() { close(ended) }) {
		<-ended
		return
	}
	r.buf = make([]byte, leastRead)
	for over := false; !over; {
		_, _, over = r.read()
	}
}

// Start is Run without waiting, if a poller has taken the connection; otherwise it returns
// false. over is called when the connection has ended, and must not block: usually on the
// poller's thread.
func (r *Reader) Start(over func()) bool {
	c, ok := r.Conn.(*socket.Conn)
	if !ok {
		return false
	}
	r.polled = c
	if r.Small {
		c.Small()
	}
	c.Serve(func(end bool) bool {
		for {
			if n, room, over := r.read(); over || n == 0 || n < room && !end {
				return over
			}
		}
	}, func() {
		Return(r.buf)
		over()
	})
	return true
}

// read reads once: n bytes, into a buffer with the given room.
func (r *Reader) read() (n, room int, over bool) {
	b := r.space()
	room = len(b) - r.have
	n, err := r.Conn.Read(b[r.have:])
	if n == 0 && err == nil {
		return 0, room, false
	}
	r.Read(n)
	var came socket.Arrival // one for all answers of this read
	if r.polled != nil {
		came = r.polled.Arrival(r.polled.At())
	} else {
		came.Last = r.Now()
	}
	all := b[:r.have+n]
	used, failed := r.Received(all, came)
	if failed != nil {
		err = failed
	}
	if err != nil {
		r.Ended(err)
		return n, room, true
	}
	r.keep(b, all[used:], n == room)
	return n, room, false
}

// space returns a buffer that begins with the bytes that are left of the last read, and
// has room for more.
func (r *Reader) space() []byte {
	if r.polled != nil {
		if shared := r.polled.Scratch(); 2*r.have < len(shared) {
			copy(shared, r.buf[:r.have])
			return shared
		}
	}
	if len(r.buf) < 2*r.have { // a large answer
		r.buf = Grow(r.buf[:r.have], r.have)
		r.buf = r.buf[:cap(r.buf)]
	}
	return r.buf
}

// keep keeps the rest of b, the buffer of the last read, which full says was filled.
func (r *Reader) keep(b, rest []byte, full bool) {
	if r.polled == nil {
		r.have = copy(b, rest)
		if full && len(b) < mostRead {
			r.buf = append(make([]byte, 0, 2*len(b)), b[:r.have]...)
			r.buf = r.buf[:cap(r.buf)]
		}
		return
	}
	before := r.buf
	r.buf, r.have = nil, len(rest)
	switch {
	case len(rest) == 0:
	case cap(before) > 0 && buffers.class(len(rest)) == buffers.class(cap(before)):
		r.buf = before
		copy(r.buf, rest)
		return
	default:
		r.buf = append(Borrow(len(rest)), rest...)
		r.buf = r.buf[:cap(r.buf)]
	}
	Return(before)
}
