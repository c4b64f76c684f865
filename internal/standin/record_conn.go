package standin

import (
	"net"
	"strconv"
	"sync"
)

// flushSize is how many bytes of lines a connection collects before it writes them.
const flushSize = 32 << 10

// A RecordedConn is a connection whose reads and writes are timed. A nil one records
// nothing.
type RecordedConn struct {
	net.Conn
	r    *Recorder
	name string

	// writing is locked during a write and until its times are stored: the peer
	// receives the answer before the write returns, and may cause the connection
	// to be closed in between.
	writing sync.Mutex

	mu                 sync.Mutex
	arrived            int64 // when bytes last arrived
	submitted, written int64 // bytes of answers: passed on by the server, and written to the connection
	began, ended       int64 // times of the last write to the connection
	sequence           int64
	unanswered         []recordEntry // received since the last call of Answered
	unwritten          []recordEntry // answered, but the answers are not written yet; in order
	lines              []byte
}

// An recordEntry is a request that is not answered yet.
type recordEntry struct {
	RecordedRequest
	sequence, arrived int64
	end               int64 // where its answer ends, as a value of submitted
}

// Read implements net.Conn.
func (c *RecordedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		at := c.r.now()
		c.mu.Lock()
		c.arrived = at
		c.mu.Unlock()
	}
	return n, err
}

// Write implements net.Conn.
func (c *RecordedConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	began := c.r.now()
	n, err := c.Conn.Write(p)
	ended := c.r.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written += int64(n)
	c.began, c.ended = began, ended
	gone := 0
	for gone < len(c.unwritten) && c.unwritten[gone].end <= c.written {
		c.line(&c.unwritten[gone], began, ended)
		gone++
	}
	if gone > 0 {
		c.unwritten = append(c.unwritten[:0], c.unwritten[gone:]...)
	}
	return n, err
}

// Close implements net.Conn.
func (c *RecordedConn) Close() error {
	err := c.Conn.Close()
	c.finish()
	c.r.mu.Lock()
	delete(c.r.conns, c)
	c.r.mu.Unlock()
	return err
}

// Received notes a request whose last bytes were the last that were read from the
// connection.
func (c *RecordedConn) Received(q RecordedRequest) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := recordEntry{RecordedRequest: q, sequence: c.sequence, arrived: c.arrived}
	c.sequence++
	if q.NoAnswer {
		c.line(&e, NoRecord, NoRecord)
		return
	}
	e.end = c.submitted
	c.unanswered = append(c.unanswered, e)
}

// Answered says that all requests received so far are answered by what the server
// has written so far, to the connection or to a wrapper that delays it.
func (c *RecordedConn) Answered() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.unanswered {
		e := &c.unanswered[i]
		switch {
		case e.end == c.submitted: // nothing was written since
			c.line(e, NoRecord, NoRecord)
		case c.written == c.submitted:
			c.line(e, c.began, c.ended)
		default:
			e.end = c.submitted
			c.unwritten = append(c.unwritten, *e)
		}
	}
	c.unanswered = c.unanswered[:0]
}

// finish writes the remaining entries, which will not be answered. The connection
// is closed already, so that a blocked write has returned.
func (c *RecordedConn) finish() {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, left := range [][]recordEntry{c.unwritten, c.unanswered} {
		for i := range left {
			c.line(&left[i], NoRecord, NoRecord)
		}
	}
	c.unwritten, c.unanswered = nil, nil
	c.r.write(c.lines)
	c.lines = nil
}

// line adds an entry to the lines, with the times of the write of its answer.
func (c *RecordedConn) line(e *recordEntry, began, ended int64) {
	l := append(c.lines, c.name...)
	l = append(l, ',')
	l = strconv.AppendInt(l, e.sequence, 10)
	l = append(append(l, ','), e.Kind...)
	l = append(append(l, ','), e.Topic...)
	for _, n := range [...]int64{int64(e.Partition), e.Offset, e.Events, e.arrived, began, ended} {
		l = appendNumber(l, n)
	}
	c.lines = append(l, '\n')
	if len(c.lines) >= flushSize {
		c.r.write(c.lines)
		c.lines = c.lines[:0]
	}
}
