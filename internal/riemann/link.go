package riemann

import (
	"context"
	"errors"
	"net"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/socket"
	"carronade/internal/riemann/wire"
	"carronade/load"
)

// A link is one connection of a lane.
type link struct {
	conn.Link
	l         *lane
	seg       [1][]byte
	startedAt time.Duration // when the lane began to use it
	proven    bool          // something was answered on it, or it lasted longer than conn.ReconnectMost
	why       error         // why reading ended
}

var (
	errServerClosed   = errors.New(load.TextConnectionClosed)
	errNoOK           = errors.New("an answer without the field ok")
	errTooManyAnswers = errors.New("an answer to a message that was not sent")
	errNoMoreMessages = errors.New("the server accepts no more messages on this connection")
)

// A protocolError is an answer that violates the protocol.
type protocolError struct{ err error }

func (e *protocolError) Error() string { return e.err.Error() }
func (e *protocolError) Unwrap() error { return e.err }

// dial makes a connection.
func (l *lane) dial(ctx context.Context) (*link, error) {
	nc, err := l.cfg.dialer.Dial(ctx, l.addr)
	if err != nil {
		return nil, err
	}
	if l.web != nil {
		if err := l.web.handshake(ctx, nc, l.addr); err != nil {
			nc.Close()
			return nil, err
		}
	}
	return newLink(l, nc), nil
}

func newLink(l *lane, nc net.Conn) *link {
	k := &link{l: l}
	k.Init(nc, k, &l.mu, func() time.Duration { return l.sink.Now() }) // the sink is set when the run starts
	return k
}

// keepConnected connects, and reconnects, until the lane's context ends. It returns while
// there is a connection, so that no goroutine waits for one that a poller reads.
func (l *lane) keepConnected() {
	l.mu.Lock()
	k := l.link
	l.mu.Unlock()
	if l.keeper().Keep(l.ctx, k, &l.pause) {
		l.tasks.Done()
	}
}

func (l *lane) keeper() conn.Keeper[link] {
	return conn.Keeper[link]{First: l.cfg.backoff, Dial: l.dial, Failed: l.down, Serve: l.serve}
}

// serve begins to use a connection.
func (l *lane) serve(k *link) conn.Next {
	var p *socket.Poller
	if l.poller != nil {
		p = l.poller(l.id)
	}
	k.Attach(p)
	l.up(k)
	again := func() {
		if l.keeper().Resume(l.ctx, l.ended(k), &l.pause) {
			l.tasks.Done()
		}
	}
	r := k.reader()
	if !r.Start(func() { go again() }) { // on the poller's thread, which must not wait
		go func() {
			r.Run()
			again()
		}()
	}
	return conn.Later
}

// ended cleans up after a connection.
func (l *lane) ended(k *link) conn.Next {
	over := l.lost(k, k.why)
	k.Release()
	switch {
	case over:
		return conn.Never
	case errors.Is(k.why, errNoMoreMessages):
		return conn.AtOnce
	case k.proven:
		return conn.AfterFirst
	}
	return conn.AfterPause
}

// up starts to use a connection.
func (l *lane) up(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.sink.Now()
	if l.link == nil {
		l.counts.Reconnects++
	}
	l.link = k
	l.outage.Over(now, l.cfg.happened)
	k.startedAt = now
	l.countConnected(1)
	if l.closed || l.ctx.Err() != nil {
		k.Kill(conn.ErrClosed)
		return
	}
	for i := l.begunRuns; i < l.queue.tail; i++ { // they waited for the connection, which is the system's delay
		b := &l.queue.at(i).batch
		b.Free = max(b.Free, now)
	}
	k.Watch(l.cfg.requestTimeout)
	k.PumpLater() // messages that waited for it go first
	l.ready(now)
}

// countConnected adds n to the number of clients that have a connection.
func (l *lane) countConnected(n int32) {
	if l.connected != nil {
		l.connected.Add(n)
	}
}

// down notes that an attempt to connect failed.
func (l *lane) down(err error) {
	now := l.sink.Now()
	l.cfg.absent.Note(l.addr, now, err.Error())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outage.Note(now, err)
	if l.unreachable(now) && !l.closed {
		l.fail(now)
		l.ready(now)
	}
}

// lost cleans up after a lost connection: messages that were begun are completed
// as unknown, the others wait for the next connection. over reports that the
// lane is closed and makes no other.
func (l *lane) lost(k *link, err error) (over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.Bury(err)
	now := l.sink.Now()
	k.proven = k.proven || now-k.startedAt > conn.ReconnectMost // one that was idle, and that the server then closed, was usable
	l.link = nil
	l.outage.Note(now, k.Cause())
	l.countConnected(-1)
	if l.closed || l.ctx.Err() != nil {
		return true
	}
	l.cfg.happened("connection lost", time.Now(), 0)
	l.giveUp(now, classOf(k.Cause()), errorText(k.Cause()))
	// Skip the rest of a message that was written in part.
	for l.messagesToEdge < l.begun {
		l.advanceEdge()
	}
	l.off = l.edge
	l.begun, l.maybeBegun = l.messagesToEdge, l.messagesToEdge
	l.deliver()
	return false
}

// classOf is the class of messages that a connection's end left unknown.
func classOf(cause error) load.Class {
	switch {
	case errors.Is(cause, conn.ErrTimeout):
		return load.Timeout
	case errors.As(cause, new(*protocolError)):
		return load.Protocol
	case errors.Is(cause, conn.ErrClosed):
		return load.Canceled
	}
	return load.Refused
}

// errorText returns the text of a connection's error without the local address:
// its port changes with each connection, and the report counts equal texts.
func errorText(cause error) string {
	if op := (*net.OpError)(nil); errors.As(cause, &op) && op.Source != nil {
		theirs := *op
		theirs.Source = nil
		return theirs.Error()
	}
	return cause.Error()
}

// Oldest implements conn.Queue.
func (k *link) Oldest() (sent time.Duration, ok bool) {
	if q := &k.l.queue; q.head < k.l.begunRuns {
		return q.at(q.head).sent, true
	}
	if k.Writing() && k.l.completed < k.l.maybeBegun { // what it writes is not known before it returns, and over TLS it may block
		return k.Out.Began(), true
	}
	return 0, false
}

// Pending implements conn.Queue.
func (k *link) Pending() bool { return k.l.off < len(k.l.out) || len(k.l.waiting) > 0 }

// Load implements conn.Queue: a write has the contents of one buffer.
func (k *link) Load(w *socket.Writer) int {
	l := k.l
	if l.off == len(l.out) {
		conn.Return(l.out)
		l.out, l.waiting = l.waiting, nil
		l.off, l.edge, l.outLast = 0, 0, l.queued
	}
	k.seg[0] = l.out[l.off:]
	l.maybeBegun = l.outLast
	return w.Add(k.seg[:], 0)
}

// Written implements conn.Queue.
func (k *link) Written(n int, err error) {
	l := k.l
	k.seg[0] = nil
	l.writtenBy.Add(uint64(n))
	if l.closed { // all messages are completed
		return
	}
	if err != nil && !k.Out.Direct() {
		n = len(l.out) - l.off // all of it may have been sent
	}
	l.wrote(n)
}

// Flushed implements conn.Queue.
func (k *link) Flushed() {
	if !k.l.closed {
		k.l.ready(k.l.sink.Now())
	}
}

// wrote notes that n more bytes were written.
func (l *lane) wrote(n int) {
	l.off += n
	if l.off == len(l.out) {
		l.edge, l.messagesToEdge = l.off, l.outLast
	}
	for l.edge < l.off {
		l.advanceEdge()
	}
	l.maybeBegun = l.messagesToEdge
	if l.completed > l.fullyWritten() {
		l.link.Kill(&protocolError{errTooManyAnswers})
		return
	}
	l.begin(l.messagesToEdge)
	if l.off == len(l.out) {
		conn.Return(l.out)
		l.out, l.off, l.edge = nil, 0, 0
	}
}

// advanceEdge moves edge to the end of the next message in out.
func (l *lane) advanceEdge() {
	if l.web != nil {
		l.edge += l.web.messageSize(l.out[l.edge:])
	} else {
		l.edge += wire.FrameSize(l.out[l.edge:])
	}
	l.messagesToEdge++
}

// fullyWritten is how many messages were written completely. It is valid only
// while no write is in progress.
func (l *lane) fullyWritten() uint64 {
	if l.edge > l.off {
		return l.messagesToEdge - 1
	}
	return l.messagesToEdge
}

// begin notes that the last write began messages up to number n.
func (l *lane) begin(n uint64) {
	if n <= l.begun {
		return
	}
	at := l.link.Out.Began()
	for ; l.begunRuns < l.queue.tail; l.begunRuns++ {
		r := l.queue.at(l.begunRuns)
		if r.first() >= n {
			break
		}
		if r.last > n {
			l.queue.split(l.begunRuns, n-r.first())
			r = l.queue.at(l.begunRuns)
		}
		r.sent = at
		if l.link.Waited() {
			// It waited behind a full socket, which is the system's delay, not
			// the generator's.
			r.batch.Free = max(r.batch.Free, at)
		}
	}
	l.begun = n
}
