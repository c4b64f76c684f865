package riemann

import (
	"context"
	"errors"
	"net"
	"time"

	"carronade/internal/conn"
	"carronade/internal/socket"
	"carronade/internal/wire/riemann"
	"carronade/load"
)

// A link is one connection of a lane. The lane's lock guards all of it except
// the reader's buffer.
type link struct {
	l      *lane
	nc     net.Conn
	out    *socket.Writer // unless it is direct, the flusher does all writing, and blocks
	seg    [1][]byte
	dead   bool
	cause  error
	proven bool // something was answered on it
	watch  *time.Timer

	mayFlush bool // the flusher may run: reader and writer do not change any more
}

var (
	errServerClosed   = errors.New(load.TextConnectionClosed)
	errTimeout        = errors.New(load.TextNoAnswer)
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
	k := &link{l: l, nc: nc}
	k.out = socket.NewWriter(nc, func() time.Duration { return l.sink.Now() }) // the sink is set when the run starts
	return k, nil
}

// usePoller leaves the reading to the poller of the lane's thread, if it has one
// and the connection is plaintext.
func (k *link) usePoller() {
	if k.l.poller == nil {
		return
	}
	p := k.l.poller(k.l.id)
	if p == nil {
		return
	}
	k.l.mu.Lock()
	defer k.l.mu.Unlock()
	k.l.pollerWaits = true
	for k.l.writing && !k.l.flusherWrites {
		k.l.cond.Wait()
	}
	k.l.pollerWaits = false
	if c, ok := p.Take(k.nc); ok {
		k.nc = c
		k.out = socket.NewWriter(c, k.l.sink.Now)
	}
}

// keepConnected connects, and reconnects, until the lane's context ends.
func (l *lane) keepConnected() {
	l.mu.Lock()
	k := l.link
	l.mu.Unlock()
	conn.Keeper[link]{First: l.cfg.backoff, Dial: l.dial, Failed: l.down, Serve: l.serve}.Run(l.ctx, k)
}

// serve uses a connection until it has ended.
func (l *lane) serve(k *link) conn.Next {
	k.usePoller()
	k.allowFlusher()
	l.up(k)
	err := k.read()
	over := l.lost(k, err)
	if c, ok := k.nc.(*socket.Conn); ok {
		c.Release()
	}
	switch {
	case over:
		return conn.Never
	case errors.Is(err, errNoMoreMessages):
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
	l.link, l.outage = k, conn.Outage{}
	l.countConnected(1)
	if l.closed || l.ctx.Err() != nil {
		k.kill(conn.ErrClosed)
		return
	}
	k.watch = time.AfterFunc(l.cfg.requestTimeout, k.checkTimeout)
	if l.pending() && !l.writing && !k.dead { // messages that waited for it go first
		l.writing = true
		l.wakeFlusher()
	}
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
	k.kill(err)
	if k.watch != nil {
		k.watch.Stop()
	}
	for l.writing {
		l.cond.Wait()
	}
	now := l.sink.Now()
	l.link = nil
	l.outage.Note(now, k.cause)
	l.countConnected(-1)
	if l.closed || l.ctx.Err() != nil {
		return true
	}
	l.cfg.happened("connection lost", time.Now(), 0)
	l.giveUp(now, classOf(k.cause), errorText(k.cause))
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
	case errors.Is(cause, errTimeout):
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

// kill ends the connection; the reader notices, and cleans up.
func (k *link) kill(cause error) {
	if k.dead {
		return
	}
	k.dead, k.cause = true, cause
	socket.Abort(k.nc)
	k.l.cond.Broadcast()
}

// checkTimeout ends the connection when its oldest message was not answered in
// time: a later answer could not be trusted to belong to it.
func (k *link) checkTimeout() {
	l := k.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.dead || l.closed {
		return
	}
	left := l.cfg.requestTimeout
	if q := &l.queue; q.head < l.begunRuns {
		left += q.at(q.head).sent - l.sink.Now()
	}
	if left <= 0 {
		k.kill(errTimeout)
		return
	}
	k.watch.Reset(left)
}

// pending reports whether there is something to write.
func (l *lane) pending() bool { return l.off < len(l.out) || len(l.waiting) > 0 }

// pump writes what waits, unless a write is in progress.
func (l *lane) pump() {
	k := l.link
	if l.writing || k == nil || k.dead || !l.pending() {
		return
	}
	l.writing = true
	if k.out.Direct() {
		for l.pending() && !k.dead {
			if !k.write(false) {
				break
			}
		}
		if k.dead || !l.pending() {
			l.endWriting()
			return
		}
	}
	l.wakeFlusher()
}

// wakeFlusher leaves the writing to the flusher, which runs at once, or after usePoller.
func (l *lane) wakeFlusher() {
	l.flusherWrites = true
	if l.link.mayFlush {
		l.tasks.Go(l.link.flusher)
	} else {
		l.cond.Broadcast() // usePoller waits until no write is in progress
	}
}

// allowFlusher lets the flusher run from now on.
func (k *link) allowFlusher() {
	k.l.mu.Lock()
	defer k.l.mu.Unlock()
	k.mayFlush = true
	if k.l.flusherWrites {
		k.l.tasks.Go(k.flusher)
	}
}

// endWriting notes that no write is in progress.
func (l *lane) endWriting() {
	l.writing, l.flusherWrites = false, false
	if l.pollerWaits || l.link == nil || l.link.dead {
		l.cond.Broadcast()
	}
}

// flusher writes what the socket did not accept at once. It runs only while there
// is such, because each goroutine takes memory.
func (k *link) flusher() {
	l := k.l
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.pending() && !k.dead {
		k.write(true)
		if !l.closed {
			l.ready(l.sink.Now())
		}
	}
	l.endWriting()
}

// write writes the contents of one buffer, and releases the lock meanwhile. With
// wait it waits until the socket accepts some bytes. It returns false if the
// socket accepted fewer bytes than it was given, or the link is dead.
func (k *link) write(wait bool) bool {
	l := k.l
	if l.off == len(l.out) {
		conn.Return(l.out)
		l.out, l.waiting = l.waiting, nil
		l.off, l.edge, l.outLast = 0, 0, l.queued
	}
	k.seg[0] = l.out[l.off:]
	k.out.Reset()
	total := k.out.Add(k.seg[:], 0)
	l.waited = l.flusherWrites && (k.out.Direct() || k.out.Slow())
	l.maybeBegun = l.outLast
	l.mu.Unlock()
	n, err := k.out.Write(wait)
	k.seg[0] = nil
	l.mu.Lock()
	l.writtenBy.Add(uint64(n))
	if l.closed { // all messages are completed
		k.kill(conn.ErrClosed)
		return false
	}
	if err != nil && !k.out.Direct() {
		n = total // all of it may have been sent
	}
	l.wrote(n)
	if err != nil {
		k.kill(err)
	}
	return n == total && !k.dead
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
		l.link.kill(&protocolError{errTooManyAnswers})
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
		l.edge += riemann.FrameSize(l.out[l.edge:])
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
	at := l.link.out.Began()
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
		if l.waited {
			// It waited behind a full socket, which is the system's delay, not
			// the generator's.
			r.batch.Free = max(r.batch.Free, at)
		}
	}
	l.begun = n
}
