// Package socket writes to connections for lanes: many pieces in one system call,
// without blocking where the system allows it, and with the time of the first byte. On
// Linux a thread reads many connections with a Poller. It contains
// system calls and their limits, and aborts of connections; it does not depend on what
// the bytes mean, what waits for what, or in which order.
//
// Its invariant: the operating system has accepted exactly the bytes that Write reports
// as written, unless the connection is over.
package socket

import (
	"net"
	"sync/atomic"
	"time"
)

// mostPieces is how many pieces one write may have: the limit of the kernel
// (UIO_MAXIOV).
const mostPieces = 1024

// SlowWrite is how long a blocking write may take before it is attributed to
// backpressure instead of work.
const SlowWrite = time.Millisecond

// A Writer writes the bytes of one connection: Reset, any number of Adds, Write. It
// must be used by one goroutine at a time, except Began, which is safe for concurrent
// use.
type Writer struct {
	conn  net.Conn
	now   func() time.Duration
	began atomic.Int64
	slow  bool
	vector
}

// NewWriter returns a writer for a connection. now is the clock.
func NewWriter(conn net.Conn, now func() time.Duration) *Writer {
	w := &Writer{conn: conn, now: now}
	w.setup()
	return w
}

// Direct reports whether a write need not block: plain TCP on Linux. Otherwise every
// write is complete, and takes as long as the connection needs.
func (w *Writer) Direct() bool { return w.direct() }

// Began returns when the last write began, which is when its first byte was handed to
// the operating system. It is set before an answer to that write can arrive.
func (w *Writer) Began() time.Duration { return time.Duration(w.began.Load()) }

// Slow reports whether the last write took longer than a write that does not wait for the
// other side. Direct writes are never slow.
func (w *Writer) Slow() bool { return w.slow }

// Write hands the added bytes to the operating system and returns how many were
// accepted: with wait at least one, without it as many as are accepted at once,
// possibly none. A writer that is not direct always waits. An error ends the
// connection; over TLS, it is then not known how many bytes were accepted.
func (w *Writer) Write(wait bool) (int, error) {
	if w.Direct() {
		return w.send(wait)
	}
	began := w.now()
	w.began.Store(int64(began))
	segs := w.segs
	n, err := segs.WriteTo(w.conn)
	w.slow = w.now()-began > SlowWrite
	return int(n), err
}
