package apm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"carronade/internal/conn"
	"carronade/internal/socket"
	"carronade/load"
)

// A link is one connection. The lane's lock guards all of it. A poller, if it has the
// connection, writes it too.
type link struct {
	conn.Link
	l *lane

	offset        int    // bytes written of the lane's request next
	maybeBegun    uint64 // requests below it are written, or passed to a write that has not returned
	seg           [1][]byte
	marks         []mark            // what is being written, by request
	loaded        int               // bytes of all marks
	answeredEarly []*encodedRequest // completed while being written; released after the write

	socketOf

	headAtStart uint64        // the lane's head when the link came up
	startedAt   time.Duration // when the link came up
	usable      bool          // it came up, and the lane's goroutine reads it
}

var (
	errServerClosed     = errors.New(load.TextConnectionClosed)
	errAnnouncedClose   = errors.New("the server closed the connection, as its last answer announced")
	errEarlyAnswer      = errors.New("an answer to a partly written request")
	errUnexpectedAnswer = errors.New("an answer without a request")
)

func newLink(l *lane, nc net.Conn) *link {
	k := &link{l: l}
	if p := l.s.poller(l.id); p != nil {
		nc = p.adopt(k, nc)
	}
	k.Init(nc, k, &l.mu, func() time.Duration { return l.s.sink.Now() }) // the sink is set when the run starts
	return k
}

// began is when the last write began.
func (k *link) began() time.Duration {
	if k.p != nil {
		return k.at
	}
	return k.Out.Began()
}

// pump writes what is queued, unless another goroutine does.
func (k *link) pump() {
	switch {
	case k.p == nil:
		k.Pump()
	case k.Dead() || !k.Pending() || k.armed: // if armed, the poller will write
	case k.inRing:
		k.queue()
	default:
		k.write(false)
	}
}

// Pending implements conn.Queue.
func (k *link) Pending() bool { return k.l.next < k.l.tail }

// Written implements conn.Queue.
func (k *link) Written(n int, err error) { k.wrote(n, err, k.Waited()) }

// Flushed implements conn.Queue.
func (k *link) Flushed() {
	k.l.deliver()
	k.l.ready(k.l.s.sink.Now())
}

// Oldest implements conn.Queue.
func (k *link) Oldest() (sent time.Duration, ok bool) {
	l := k.l
	if l.head == l.tail {
		return 0, false
	}
	if sent = l.at(l.head).sent; sent < 0 && l.head < k.maybeBegun {
		sent = k.began()
	}
	return sent, sent >= 0
}

// A mark is the part of a request that a write contains.
type mark struct {
	bytes int
	last  bool // the part includes the request's end
}

// Load implements conn.Queue: a write has as much of the queue as fits.
func (k *link) Load(w *socket.Writer) int {
	l := k.l
	k.marks = k.marks[:0]
	k.loaded = 0
	skip := k.offset
	k.maybeBegun = l.next
	for k.maybeBegun < l.tail {
		b := l.at(k.maybeBegun).encodedRequest.bytes
		k.seg[0] = b
		n := w.Add(k.seg[:], skip)
		k.marks = append(k.marks, mark{n, n == len(b)-skip})
		k.loaded += n
		k.maybeBegun++
		if n < len(b)-skip {
			break
		}
		skip = 0
	}
	return k.loaded
}

// wrote notes that n bytes were written. waited says that they waited behind a
// full socket.
func (k *link) wrote(n int, err error, waited bool) {
	l := k.l
	at := k.began()
	l.s.written.Add(uint64(n))
	for _, m := range k.marks {
		if n == 0 {
			break
		}
		if r := l.at(l.next); l.next >= l.head && r.sent < 0 { // otherwise it is answered already
			r.sent = at
			if waited {
				// The delay is the system's, not the generator's.
				r.batch.Free = max(r.batch.Free, at)
			}
		}
		if n < m.bytes || !m.last {
			k.offset += min(n, m.bytes)
			break
		}
		n -= m.bytes
		l.next++
		k.offset = 0
	}
	k.maybeBegun = l.next // requests beyond that are not being written any more
	for i, r := range k.answeredEarly {
		r.release()
		k.answeredEarly[i] = nil
	}
	k.answeredEarly = k.answeredEarly[:0]
	switch {
	case err != nil:
		k.Kill(err)
	case l.head > l.next:
		k.Kill(errEarlyAnswer)
	}
}

// Sizes of the buffer for answers: it doubles when a read fills it.
const (
	leastRead = 2 << 10
	mostRead  = 16 << 10
)

// run reads answers until the connection ends.
func (k *link) run() {
	l := k.l
	buf := make([]byte, leastRead)
	for {
		n, err := k.Conn.Read(buf)
		now := l.s.sink.Now() // one time for all answers of this read
		l.mu.Lock()
		k.received(buf[:n], err, now)
		dead := k.Dead()
		l.deliver()
		l.ready(now)
		l.mu.Unlock()
		if dead {
			return
		}
		if n == len(buf) && n < mostRead {
			buf = make([]byte, 2*n)
		}
	}
}

// received processes the result of a read.
func (k *link) received(p []byte, err error, now time.Duration) {
	k.l.s.read.Add(uint64(len(p)))
	k.processAnswers(p, now)
	if err == nil {
		return
	}
	if errors.Is(err, io.EOF) {
		if k.l.head < k.l.tail && !k.Dead() && k.l.answer.End() {
			k.answered(now)
		}
		err = errServerClosed
	}
	k.Kill(err)
}

// processAnswers reads answers from received bytes.
func (k *link) processAnswers(p []byte, now time.Duration) {
	l := k.l
	for len(p) > 0 && !k.Dead() {
		if l.head == l.tail {
			k.Kill(errUnexpectedAnswer)
			return
		}
		n, done, err := l.answer.Feed(p)
		p = p[n:]
		if err != nil {
			k.Kill(&protocolError{err})
			return
		}
		if done {
			k.answered(now)
		}
	}
}

// A protocolError is an answer that violates the protocol.
type protocolError struct{ err error }

func (e *protocolError) Error() string { return e.err.Error() }
func (e *protocolError) Unwrap() error { return e.err }

// answered completes the oldest request with the complete answer.
func (k *link) answered(now time.Duration) {
	l, a := k.l, &k.l.answer
	r := l.at(l.head)
	if l.head >= k.maybeBegun && r.sent < 0 {
		k.Kill(&protocolError{errUnexpectedAnswer})
		return
	}
	early := false
	if l.head >= l.next { // not completely written, as far as is known
		early = l.head >= k.maybeBegun
		if r.sent < 0 {
			r.sent = k.began()
		}
	}
	v := l.s.evaluate(a.Status, a.Body, a.Size == int64(len(a.Body)), r.batch.Events)
	l.complete(*r, now, v, a.Status)
	*r = request{}
	l.head++
	if v.class == load.Throttled && a.Retry > 0 && l.s.cfg.retryAfter {
		l.pause(now, time.Duration(a.Retry)*time.Second)
	}
	switch {
	case a.Close:
		k.Kill(errAnnouncedClose)
	case early:
		k.Kill(errEarlyAnswer)
	}
	a.Reset()
}

// keepConnected connects, and reconnects, until the lane or the session is
// closed. k is the first connection; nil if there is none yet.
func (l *lane) keepConnected(ctx context.Context, k *link) {
	conn.Keeper[link]{First: conn.ReconnectFirst, Dial: l.dial, Failed: l.down, Serve: l.serve}.Run(ctx, k)
}

// dial makes a connection, and starts to use it.
func (l *lane) dial(ctx context.Context) (*link, error) {
	if l.isClosed() {
		return nil, conn.ErrClosed
	}
	nc, err := l.s.cfg.dialer.Dial(ctx, l.base)
	if err != nil {
		return nil, err
	}
	return l.use(nc), nil
}

// serve reads a connection until it has ended.
func (l *lane) serve(k *link) conn.Next {
	if k.p != nil {
		<-k.released
	} else if k.usable {
		k.run()
	}
	served := l.lost(k)
	switch {
	case l.isClosed():
		return conn.Never
	case served:
		return conn.AtOnce
	}
	return conn.AfterPause // a connection that is accepted and closed at once is as bad as none
}

// use starts to use a new connection.
func (l *lane) use(nc net.Conn) *link {
	k := newLink(l, nc)
	if k.p != nil {
		k.p.add(k)
		l.up(k) // if the lane was closed meanwhile, the poller notices
	} else {
		k.Attach(nil)
		k.usable = l.up(k)
	}
	return k
}

func (l *lane) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// down notes that an attempt to connect failed.
func (l *lane) down(err error) {
	now, text := l.s.sink.Now(), l.s.cfg.redactor.line(err.Error())
	l.s.absent.Note(l.base, now, text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outage.Note(now, fmt.Errorf("connect to %s: %w", l.base, err))
	if l.outage.Longer(now, l.s.cfg.requestTimeout) {
		l.failuresLeft = failuresPerAttempt
		l.giveUp(now, load.Refused, l.s.cfg.redactor.line(l.outage.Err.Error()), true)
		l.deliver()
	}
	l.ready(now)
}

// up starts to use a connection. It returns false if the lane was closed
// meanwhile.
func (l *lane) up(k *link) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		k.Kill(conn.ErrClosed)
		return false
	}
	l.link, l.outage, l.failuresLeft = k, conn.Outage{}, 0
	l.s.connected.Add(1)
	now := l.s.sink.Now()
	k.maybeBegun, k.headAtStart, k.startedAt = l.next, l.head, now
	l.answer.Reset()
	for n := l.next; n < l.tail; n++ { // they waited for the connection, which is the system's delay
		l.at(n).batch.Free = max(l.at(n).batch.Free, now)
	}
	k.Watch(l.s.cfg.requestTimeout)
	if k.inRing { // only the ring's thread may queue
		k.p.notifyRing()
	} else {
		k.pump()
	}
	l.ready(now)
	return true
}

// lost cleans up after a connection. served reports whether it was usable: it
// answered something, or lasted longer than conn.ReconnectMost.
func (l *lane) lost(k *link) (served bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.Bury(errServerClosed)
	if l.link != k {
		return false
	}
	now := l.s.sink.Now()
	class, text := load.Refused, "connection lost: "+l.s.cfg.redactor.line(k.Cause().Error())
	var p *protocolError
	switch {
	case errors.Is(k.Cause(), conn.ErrTimeout):
		class, text = load.Timeout, k.Cause().Error()
	case errors.As(k.Cause(), &p):
		class, text = load.Protocol, l.s.cfg.redactor.line(k.Cause().Error())
	case errors.Is(k.Cause(), conn.ErrClosed):
		class = load.Canceled
	case conn.IsConnectionClosed(k.Cause()):
		text = "connection lost: " + errServerClosed.Error()
	}
	served = l.head > k.headAtStart || now-k.startedAt > conn.ReconnectMost // one that was idle, and that the server then closed, was usable
	l.giveUp(now, class, text, l.closed)
	l.link = nil
	l.s.connected.Add(-1)
	l.outage.Note(now, k.Cause())
	if !l.closed {
		l.metrics.reconnects++
		l.s.cfg.happened("connection lost", time.Now(), 0)
	}
	l.deliver()
	l.ready(now)
	return served
}
