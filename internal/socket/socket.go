// Package socket writes to connections for lanes: many pieces in one system
// call, without blocking where the system allows that, and with the time of
// the first byte. It answers for the writev and its limits, and for ends without
// goodbyes; it refuses to know what the bytes mean, who waits for what, and in
// which order.
//
// Its invariant: what Write says was written has been taken by the system, and
// nothing beyond it, unless the connection is over.
package socket

import (
	"net"
	"sync/atomic"
	"time"
)

// mostPieces is how many pieces one write carries: the kernel's own limit
// (UIO_MAXIOV).
const mostPieces = 1024

// slowWrite is how long a blocking write may take before it is taken for
// backpressure and not for work.
const slowWrite = time.Millisecond

// A Writer writes one connection's bytes: Reset, Add as often as need be,
// Write. One goroutine at a time uses it; Began may be called by any.
type Writer struct {
	conn  net.Conn
	now   func() time.Duration
	began atomic.Int64
	slow  bool
	vector
}

// NewWriter readies a writer of a connection. Times are what now says.
func NewWriter(conn net.Conn, now func() time.Duration) *Writer {
	w := &Writer{conn: conn, now: now}
	w.setup()
	return w
}

// Direct reports whether a write need not block: plain TCP on Linux. Else
// every write is whole, and as long as the connection makes it.
func (w *Writer) Direct() bool { return w.direct() }

// Began is when the last write began, which is when its first byte was handed
// to the system. It is set before anybody can have an answer to that write.
func (w *Writer) Began() time.Duration { return time.Duration(w.began.Load()) }

// Slow reports whether the last write took so long that the other side, and
// not the work, must have been why. Direct writes are never slow.
func (w *Writer) Slow() bool { return w.slow }

// Write hands what was added to the system and returns how much of that was
// taken: with wait at least a byte, without it what the system takes at once,
// which may be nothing. A writer that is not direct always waits. An error ends
// the connection; over TLS, nothing is known then of what was taken.
func (w *Writer) Write(wait bool) (int, error) {
	if w.Direct() {
		return w.send(wait)
	}
	began := w.now()
	w.began.Store(int64(began))
	segs := w.segs
	n, err := segs.WriteTo(w.conn)
	w.slow = w.now()-began > slowWrite
	return int(n), err
}
