package web

import (
	"errors"
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

	reading Reading

	headAtStart uint64        // the lane's Head when the link came up
	startedAt   time.Duration // when the link came up
}

// ErrServerClosed says that the server closed a connection without a reason.
var ErrServerClosed = errors.New(load.TextConnectionClosed)

var (
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
			k.Kill(&ProtocolError{err})
			return
		}
		if done {
			k.answered(now)
		}
	}
}

// answered completes the oldest request with the complete answer.
func (k *link) answered(now time.Duration) {
	l, a := k.l, &k.l.answer
	r := l.At(l.Head)
	if l.Head >= l.End && r.sent < 0 {
		k.Kill(&ProtocolError{errUnexpectedAnswer})
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
	l.complete(r, now, v, a.Status)
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

// use starts to use a new connection.
func (l *lane) use(nc net.Conn) *link {
	k := newLink(l, nc)
	k.reading.Start(&l.State, &k.Link, k.received, k.ended)
	l.up(k)
	return k
}

// up starts to use a connection, unless the lane was closed.
func (l *lane) up(k *link) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Closed {
		k.Kill(conn.ErrClosed)
		return
	}
	now := l.S.Sink.Now()
	l.link = k
	l.Up(now)
	k.headAtStart, k.startedAt = l.Head, now
	l.answer.Reset()
	for n := l.Next; n < l.Tail; n++ { // they waited for the connection, which is the system's delay
		l.At(n).batch.Free = max(l.At(n).batch.Free, now)
	}
	k.Watch(l.S.Timeout)
	k.Pump()
	l.Ready(now)
}

// Reading implements Connection.
func (k *link) Reading() *Reading { return &k.reading }

// Lost implements Connection: the connection was usable if it answered something, or lasted longer than
// conn.ReconnectMost.
func (k *link) Lost() (served bool) {
	l := k.l
	l.Mu.Lock()
	defer l.Mu.Unlock()
	k.Bury(ErrServerClosed)
	if l.link != k {
		return false
	}
	now := l.S.Sink.Now()
	class, text := l.Loss(k.Cause())
	served = l.Head > k.headAtStart || now-k.startedAt > conn.ReconnectMost // one that was idle, and that the server then closed, was usable
	l.giveUp(now, class, text, l.Closed)
	l.link = nil
	l.State.Lost(now, k.Cause())
	return served
}
