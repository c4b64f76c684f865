package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/socket"
	"carronade/load"
)

// A link is one connection. The lane's lock guards all of it.
type link struct {
	conn.Link
	l *lane

	seg           [1][]byte
	answeredEarly []Request // completed while being written; released after the write

	reader   conn.Reader
	released chan struct{} // closed when a poller no longer reads the connection; nil: none does

	headAtStart uint64        // the lane's Head when the link came up
	startedAt   time.Duration // when the link came up
}

var (
	ErrServerClosed     = errors.New(load.TextConnectionClosed)
	errAnnouncedClose   = errors.New("the server closed the connection, as its last answer announced")
	errEarlyAnswer      = errors.New("an answer to a partly written request")
	errUnexpectedAnswer = errors.New("an answer without a request")
)

func newLink(l *lane, nc net.Conn) *link {
	k := &link{l: l}
	k.Init(nc, k, &l.Mu, func() time.Duration { return l.S.Sink.Now() }) // the sink is set when the run starts
	return k
}

// Pending implements conn.Queue.
func (k *link) Pending() bool { return k.l.Next < k.l.Tail }

// Flushed implements conn.Queue.
func (k *link) Flushed() {
	k.l.Deliver()
	k.l.Ready(k.l.S.Sink.Now())
}

// Oldest implements conn.Queue.
func (k *link) Oldest() (sent time.Duration, ok bool) {
	l := k.l
	if l.Head == l.Tail {
		return 0, false
	}
	if sent = l.At(l.Head).sent; sent < 0 && l.BeingWritten(l.Head) {
		sent = k.Out.Began()
	}
	return sent, sent >= 0
}

// Load implements conn.Queue: a write has as much of the queue as fits.
func (k *link) Load(w *socket.Writer) int {
	return k.l.Load(w, func(r *request) ([][]byte, int) {
		k.seg[0] = r.prepared.Bytes()
		return k.seg[:], len(k.seg[0])
	})
}

// Written implements conn.Queue.
func (k *link) Written(n int, err error) {
	l := k.l
	at, waited := k.Out.Began(), k.Waited()
	l.S.Written.Add(uint64(n))
	l.Window.Written(n, func(r *request) {
		if r.sent >= 0 {
			return
		}
		r.sent = at
		if waited {
			// The delay is the system's, not the generator's.
			r.batch.Free = max(r.batch.Free, at)
		}
	})
	early := len(k.answeredEarly) > 0
	for i, r := range k.answeredEarly {
		r.Release()
		k.answeredEarly[i] = nil
	}
	k.answeredEarly = k.answeredEarly[:0]
	switch {
	case err != nil:
		k.Kill(err)
	case l.Head > l.Next:
		k.Kill(errEarlyAnswer)
	case early: // when the answer came, the lane could not accept another request yet
		l.Ready(l.S.Sink.Now())
	}
}

// received processes what was just read, and notes when the answers in it arrived.
func (k *link) received(b []byte, came socket.Arrival) (used int, err error) {
	l := k.l
	l.Mu.Lock()
	defer l.Mu.Unlock()
	now, head, completed := came.Last, l.Head, len(l.Out)
	k.processAnswers(b, now)
	if answers, out := int(l.Head-head), l.Out[completed:]; answers > 0 && len(out) > 0 {
		l.Earliest = came.First(answers, l.answer.Begun())
		for i := range out {
			out[i].Earliest = l.Earliest
		}
		if c, ok := k.Conn.(*socket.Conn); ok && out[0].Sent != out[len(out)-1].Sent {
			c.Together()
		}
	}
	l.Deliver()
	l.Ready(now)
	l.Earliest = 0
	if k.Dead() {
		err = k.Cause()
	}
	return len(b), err
}

// ended notes why reading ended.
func (k *link) ended(err error) {
	l := k.l
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if errors.Is(err, io.EOF) {
		if l.Head < l.Tail && !k.Dead() && l.answer.End() {
			k.answered(l.S.Sink.Now())
			l.Deliver()
		}
		err = ErrServerClosed
	}
	k.Kill(err)
}

// processAnswers reads answers from received bytes.
func (k *link) processAnswers(p []byte, now time.Duration) {
	l := k.l
	for len(p) > 0 && !k.Dead() {
		if l.Head == l.Tail {
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
	r := l.At(l.Head)
	if l.Head >= l.End && r.sent < 0 {
		k.Kill(&protocolError{errUnexpectedAnswer})
		return
	}
	early := false
	if l.Head >= l.Next { // not completely written, as far as is known
		early = !l.BeingWritten(l.Head)
		if r.sent < 0 {
			r.sent = k.Out.Began()
		}
	}
	v := l.S.Evaluate(a.Status, a.Body, a.Size == int64(len(a.Body)), r.batch.Events)
	l.complete(*r, now, v, a.Status)
	l.Pop()
	if v.Class == load.Throttled && a.Retry > 0 && l.S.RetryAfter {
		l.Pause(now, time.Duration(a.Retry)*time.Second)
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
	if l.IsClosed() {
		return nil, conn.ErrClosed
	}
	nc, err := l.S.Dialer.Dial(ctx, l.Server)
	if err != nil {
		return nil, err
	}
	return l.use(nc), nil
}

// serve reads a connection until it has ended.
func (l *lane) serve(k *link) conn.Next {
	if k.released != nil {
		<-k.released
	} else {
		k.reader.Run()
	}
	served := l.lost(k)
	k.Release()
	switch {
	case l.IsClosed():
		return conn.Never
	case served:
		return conn.AtOnce
	}
	return conn.AfterPause // a connection that is accepted and closed at once is as bad as none
}

// use starts to use a new connection.
func (l *lane) use(nc net.Conn) *link {
	k := newLink(l, nc)
	k.Attach(l.S.Poller(l.Num))
	k.reader = conn.Reader{
		Conn: k.Conn, Now: l.S.Sink.Now, Received: k.received, Ended: k.ended,
		Read: func(n int) { l.S.Read.Add(uint64(n)) }, Small: true,
	}
	released := make(chan struct{})
	if k.reader.Start(func() { close(released) }) {
		k.released = released
	}
	l.up(k)
	return k
}

// down notes that an attempt to connect failed.
func (l *lane) down(err error) {
	now, text := l.S.Sink.Now(), l.S.Redactor.Line(err.Error())
	l.S.Failures.Note(l.Server, now, text)
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Outage.Note(now, fmt.Errorf("connect to %s: %w", l.Server, err))
	if l.Outage.Longer(now, l.S.Timeout) {
		l.FailuresLeft = FailuresPerAttempt
		l.giveUp(now, load.Refused, l.S.Redactor.Line(l.Outage.Err.Error()), true)
		l.Deliver()
	}
	l.Ready(now)
}

// up starts to use a connection, unless the lane was closed meanwhile.
func (l *lane) up(k *link) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Closed {
		k.Kill(conn.ErrClosed)
		return
	}
	now := l.S.Sink.Now()
	l.link, l.FailuresLeft = k, 0
	l.Outage.Over(now, l.S.Happened)
	l.S.Note(1)
	k.headAtStart, k.startedAt = l.Head, now
	l.answer.Reset()
	for n := l.Next; n < l.Tail; n++ { // they waited for the connection, which is the system's delay
		l.At(n).batch.Free = max(l.At(n).batch.Free, now)
	}
	k.Watch(l.S.Timeout)
	k.Pump()
	l.Ready(now)
}

// lost cleans up after a connection. served reports whether it was usable: it
// answered something, or lasted longer than conn.ReconnectMost.
func (l *lane) lost(k *link) (served bool) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	k.Bury(ErrServerClosed)
	if l.link != k {
		return false
	}
	now := l.S.Sink.Now()
	class, text := load.Refused, "connection lost: "+l.S.Redactor.Line(k.Cause().Error())
	var p *protocolError
	switch {
	case errors.Is(k.Cause(), conn.ErrTimeout):
		class, text = load.Timeout, k.Cause().Error()
	case errors.As(k.Cause(), &p):
		class, text = load.Protocol, l.S.Redactor.Line(k.Cause().Error())
	case errors.Is(k.Cause(), conn.ErrClosed):
		class = load.Canceled
	case conn.IsConnectionClosed(k.Cause()):
		text = "connection lost: " + ErrServerClosed.Error()
	}
	served = l.Head > k.headAtStart || now-k.startedAt > conn.ReconnectMost // one that was idle, and that the server then closed, was usable
	l.giveUp(now, class, text, l.Closed)
	l.link = nil
	l.S.Note(-1)
	l.Outage.Note(now, k.Cause())
	if !l.Closed {
		l.Metrics.Reconnects++
		l.S.Happened("connection lost", time.Now(), 0)
	}
	l.Deliver()
	l.Ready(now)
	return served
}
