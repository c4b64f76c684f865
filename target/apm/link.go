package apm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"carronade/internal/dial"
	"carronade/internal/socket"
	"carronade/load"
)

// A link is one connection. Whoever finds something to write and nobody at it
// writes; on Linux and without TLS that is the sending thread itself, by a
// write that does not block. What the socket does not take is left to the
// link's flusher, which waits for it. All is guarded by the lane's lock, which
// only the flusher gives up while it writes.
type link struct {
	l    *lane
	nc   net.Conn
	out  *socket.Writer // of connections that are not a poller's
	cond *sync.Cond     // on the lane's lock: handed and dead have changed

	offset  int    // bytes written of the lane's request next
	upto    uint64 // requests below it are written, or in the flusher's hands
	handed  bool   // the flusher owns the writing
	writing bool   // and has given up the lock
	slow    bool   // the last blocking write took long
	seg     [1][]byte
	marks   []mark // what the writer was given, by request
	loaded  int    // bytes of it

	socketOf

	born  uint64        // the lane's head when it came up
	since time.Duration // and when that was
	dead  bool
	cause error
	done  chan struct{} // the flusher has ended

	usable bool // it came up, and a goroutine of its own reads it
}

var (
	errClosed  = errors.New("closed")
	errTimeout = errors.New(load.TextNoAnswer)
	errHangUp  = errors.New(load.TextHungUp)
	errGoodbye = errors.New("the server closed the connection, as its last answer announced")
	errEarly   = errors.New("an answer to a partly written request")
	errStray   = errors.New("an answer without a request")
)

func newLink(l *lane, nc net.Conn) *link {
	k := &link{l: l, nc: nc, cond: sync.NewCond(&l.mu), done: make(chan struct{})}
	if p := l.s.poller(l.id); p == nil || !p.adopt(k) {
		k.out = socket.NewWriter(nc, func() time.Duration { return l.s.sink.Now() }) // there is no sink before the run
	}
	return k
}

// began is when the last write began.
func (k *link) began() time.Duration {
	if k.p != nil {
		return k.at
	}
	return k.out.Began()
}

// pump writes what is queued, unless the flusher is at it.
func (k *link) pump() {
	l := k.l
	if k.handed || k.dead || l.next == l.tail {
		return
	}
	if k.p != nil {
		switch {
		case k.armed: // the poller goes on
		case k.riding:
			k.queue()
		default:
			k.write(false)
		}
		return
	}
	if k.out.Direct() {
		for l.next < l.tail && !k.dead {
			k.load()
			n, err := k.out.Write(false)
			k.wrote(n, err, false)
			if n < k.loaded {
				break
			}
		}
		if l.next == l.tail || k.dead {
			return
		}
	}
	k.handed = true
	k.cond.Broadcast()
}

// A mark is what a vector holds of one request.
type mark struct {
	bytes int
	rest  bool // all that was left of it
}

// load fills the writer with as much of the queue as fits.
func (k *link) load() {
	l := k.l
	k.out.Reset()
	k.marks = k.marks[:0]
	k.loaded = 0
	skip := k.offset
	k.upto = l.next
	for k.upto < l.tail {
		b := l.at(k.upto).encodedRequest.bytes
		k.seg[0] = b
		n := k.out.Add(k.seg[:], skip)
		k.marks = append(k.marks, mark{n, n == len(b)-skip})
		k.loaded += n
		k.upto++
		if n < len(b)-skip {
			break
		}
		skip = 0
	}
}

// wrote notes that n bytes were written. Waited: behind a full socket.
func (k *link) wrote(n int, err error, waited bool) {
	l := k.l
	at := k.began()
	l.s.written.Add(uint64(n))
	for _, m := range k.marks {
		if n == 0 {
			break
		}
		if r := l.at(l.next); l.next >= l.head && r.sent < 0 { // else it is answered already
			r.sent = at
			if waited {
				// The system's doing, not the generator's.
				r.batch.Free = max(r.batch.Free, at)
			}
		}
		if n < m.bytes || !m.rest {
			k.offset += min(n, m.bytes)
			break
		}
		n -= m.bytes
		l.next++
		k.offset = 0
	}
	k.upto = l.next // only while it is being written may a request turn out to be whole
	switch {
	case err != nil:
		k.kill(err)
	case l.head > l.next:
		k.kill(errEarly)
	}
}

// flusher writes what the socket would not take at once.
func (k *link) flusher() {
	defer close(k.done)
	l := k.l
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for !k.handed && !k.dead {
			k.cond.Wait()
		}
		if k.dead {
			return
		}
		for l.next < l.tail && !k.dead {
			waited := k.out.Direct() || k.slow
			k.load()
			k.writing = true
			l.mu.Unlock()
			n, err := k.out.Write(true)
			l.mu.Lock()
			k.writing = false
			k.slow = k.out.Slow()
			k.wrote(n, err, waited)
		}
		k.handed = false
		now := l.s.sink.Now()
		l.deliver()
		l.ready(now)
	}
}

// kill ends the connection; the reader notices, and cleans up.
func (k *link) kill(cause error) {
	if k.dead {
		return
	}
	k.dead, k.cause = true, cause
	if k.p != nil {
		k.shut()
		return
	}
	socket.Abort(k.nc)
	k.cond.Broadcast()
}

const readBuffer = 16 << 10

// run reads answers until the connection ends.
func (k *link) run() {
	l := k.l
	buf := make([]byte, readBuffer)
	for {
		n, err := k.nc.Read(buf)
		now := l.s.sink.Now() // one look at the clock for all that this wake-up brought
		l.mu.Lock()
		k.received(buf[:n], err, now)
		dead := k.dead
		l.deliver()
		l.ready(now)
		l.mu.Unlock()
		if dead {
			return
		}
	}
}

// received takes in what a read brought.
func (k *link) received(p []byte, err error, now time.Duration) {
	k.l.s.read.Add(uint64(len(p)))
	k.take(p, now)
	if err == nil {
		return
	}
	if errors.Is(err, io.EOF) {
		if k.l.head < k.l.tail && !k.dead && k.l.answer.End() {
			k.answered(now)
		}
		err = errHangUp
	}
	k.kill(err)
}

// take reads answers from bytes that came.
func (k *link) take(p []byte, now time.Duration) {
	l := k.l
	for len(p) > 0 && !k.dead {
		if l.head == l.tail {
			k.kill(errStray)
			return
		}
		n, done, err := l.answer.Feed(p)
		p = p[n:]
		if err != nil {
			k.kill(&protocolError{err})
			return
		}
		if done {
			k.answered(now)
		}
	}
}

// A protocolError is an answer that makes no sense.
type protocolError struct{ err error }

func (e *protocolError) Error() string { return e.err.Error() }
func (e *protocolError) Unwrap() error { return e.err }

// answered completes the oldest request by the answer that is whole.
func (k *link) answered(now time.Duration) {
	l, a := k.l, &k.l.answer
	r := l.at(l.head)
	if l.head >= k.upto && r.sent < 0 {
		k.kill(&protocolError{errStray})
		return
	}
	early := false
	if l.head >= l.next { // of which not all was written, as far as is known
		early = !k.writing
		if r.sent < 0 {
			r.sent = k.began()
		}
	}
	v := l.s.judge(a.Status, a.Body, a.Size == int64(len(a.Body)), r.batch.Events)
	l.complete(*r, now, v, a.Status)
	*r = request{}
	l.head++
	if v.class == load.Throttled && a.Retry > 0 && l.s.cfg.quiet {
		l.hush(now, time.Duration(a.Retry)*time.Second)
	}
	switch {
	case a.Close:
		k.kill(errGoodbye)
	case early:
		k.kill(errEarly)
	}
	a.Reset()
}

// Pauses between attempts to connect.
const (
	reconnectFirst = 50 * time.Millisecond
	reconnectMost  = time.Second
)

// keep keeps a connection until the lane or the session is closed. The first
// was made when the session was opened; nil: it was not.
func (l *lane) keep(ctx context.Context, k *link) {
	pause := time.Duration(0)
	for ; ; k = nil {
		if k == nil {
			nc, err := l.s.cfg.dialer.Dial(ctx, l.base)
			if err != nil {
				if ctx.Err() != nil {
					return
				}
				l.s.absent.Note(l.base, l.s.sink.Now(), l.s.cfg.veil.line(err.Error()))
				l.down(fmt.Errorf("connect to %s: %w", l.base, err))
				pause = min(max(2*pause, reconnectFirst), reconnectMost)
				select {
				case <-ctx.Done():
					return
				case <-time.After(pause/2 + rand.N(pause/2)):
				}
				continue
			}
			k = l.use(nc)
		}
		if k.p != nil {
			<-k.gone
		} else {
			if k.usable {
				k.run()
			}
			<-k.done // what it was writing is in its hands no longer
		}
		began := l.lost(k)
		if l.isClosed() || ctx.Err() != nil {
			return
		}
		if began {
			pause = 0
			continue
		}
		// Connections that are taken and dropped at once are no better than
		// none.
		pause = min(max(2*pause, reconnectFirst), reconnectMost)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}

// use begins to use a connection that was made.
func (l *lane) use(nc net.Conn) *link {
	k := newLink(l, nc)
	if k.p != nil {
		k.p.add(k)
		l.up(k) // where it was closed meanwhile, the poller sees that, too
	} else {
		go k.flusher()
		k.usable = l.up(k)
	}
	return k
}

func (l *lane) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// down notes that there is no connection.
func (l *lane) down(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.s.sink.Now()
	if l.downErr == nil {
		l.downAt = now
	}
	l.downErr = err
	if now-l.downAt > l.s.cfg.requestTimeout {
		l.doomed = mostDoomed
		l.give(now, load.Refused, l.s.cfg.veil.line(err.Error()), true)
		l.deliver()
	}
	l.ready(now)
}

// up begins to use a connection. False: the lane was closed meanwhile.
func (l *lane) up(k *link) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		k.kill(errClosed)
		return false
	}
	l.link, l.downErr, l.doomed = k, nil, 0
	l.s.connected.Add(1)
	now := l.s.sink.Now()
	k.upto, k.born, k.since = l.next, l.head, now
	l.answer.Reset()
	for n := l.next; n < l.tail; n++ { // fired, and not written: not by our fault
		l.at(n).batch.Free = max(l.at(n).batch.Free, now)
	}
	if k.riding { // then this is not the thread that may queue
		k.p.call()
	} else {
		k.pump()
	}
	l.ready(now)
	return true
}

// lost cleans up after a connection and reports whether it had been of use: it
// had answered, or would have for a while.
func (l *lane) lost(k *link) (served bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.link != k {
		return false
	}
	now := l.s.sink.Now()
	class, text := load.Refused, "connection lost: "+l.s.cfg.veil.line(k.cause.Error())
	var p *protocolError
	switch {
	case errors.Is(k.cause, errTimeout):
		class, text = load.Timeout, k.cause.Error()
	case errors.As(k.cause, &p):
		class, text = load.Protocol, l.s.cfg.veil.line(k.cause.Error())
	case errors.Is(k.cause, errClosed):
		class = load.Canceled
	case dial.IsHangUp(k.cause):
		text = "connection lost: " + errHangUp.Error()
	}
	served = l.head > k.born || now-k.since > reconnectMost // one that nobody needed, and that timed out, was a good one
	l.give(now, class, text, l.closed)
	l.link = nil
	l.s.connected.Add(-1)
	l.downAt, l.downErr = now, k.cause
	if !l.closed {
		l.metrics.reconnects++
	}
	l.deliver()
	l.ready(now)
	return served
}
