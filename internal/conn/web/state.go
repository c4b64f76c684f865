package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/socket"
	"carronade/load"
)

// A State is what every lane has, whatever its connection is. The lane embeds it. Mu guards all that
// changes.
type State struct {
	S      *Lanes
	Num    int
	Server string
	// Accepts reports whether the lane accepts a batch now. It is called with Mu held.
	Accepts func(now time.Duration) bool

	Mu           sync.Mutex
	Out          []load.Outcome // not delivered yet
	ReadyDue     bool           // Fire was refused, so Ready is due
	Earliest     time.Duration  // while answers are processed: their earliest possible arrival; 0: not known
	Closed       bool
	PausedUntil  time.Duration // the server asked to send nothing until then
	Outage       conn.Outage
	FailuresLeft int // batches to accept and fail until the next attempt to connect
	Metrics      Metrics
}

// ID implements load.Lane.
func (l *State) ID() int { return l.Num }

// Capabilities implements load.Lane.
func (*State) Capabilities() load.LaneCapabilities { return load.LaneCapabilities{} }

// FailuresPerAttempt is how many batches fail with each attempt to connect to a
// server that has long been unreachable: enough that a run ends, but not at full
// speed.
const FailuresPerAttempt = 100

// Deliver passes the outcomes to the sink.
func (l *State) Deliver() {
	if len(l.Out) > 0 {
		l.S.Sink.Complete(l.Out)
		clear(l.Out)
		l.Out = l.Out[:0]
	}
}

// Take makes the request of a batch that Fire takes. connected: the lane has a connection. A nil request means
// that the batch is withheld, or over without having been sent.
func (l *State) Take(b *load.Batch, from Source, connected bool, now time.Duration) Request {
	if !connected { // long without a connection
		l.FailuresLeft--
		b.Bytes = from.Plain(b.First, int(b.Events))
		l.Complete(b, -1, now, Verdict{Failed: b.Events, Class: load.Refused, Text: l.S.Redactor.Line(l.Outage.Err.Error())}, 0, 0)
		return nil
	}
	r, err := from.Prepare(b.First, int(b.Events), l.S.Wall.Add(now))
	if b.Withheld = l.S.withholds(b, err); b.Withheld {
		return nil
	}
	if err != nil {
		l.Complete(b, -1, now, Verdict{Failed: b.Events, Class: load.Rejected, Text: l.S.Redactor.Line(err.Error())}, 0, 0)
		return nil
	}
	b.Bytes = r.Plain()
	return r
}

// Complete adds the outcome of a batch. sent is when its first byte was written, -1 if none was; wire the bytes of its
// request, which count if it was sent, and 0 without one.
func (l *State) Complete(b *load.Batch, sent, now time.Duration, v Verdict, status int, wire int64) {
	if sent < 0 {
		wire = 0
	}
	if wire > 0 {
		l.Metrics.Requests++
		l.Metrics.Events += uint64(b.Events)
		l.Metrics.Bytes += uint64(b.Bytes)
		l.Metrics.Wire += uint64(wire)
	}
	l.Out = append(l.Out, load.Outcome{
		Batch: *b, Lane: int32(l.Num), Sent: sent, Done: now, Earliest: l.Earliest,
		Acked: v.Acked, Failed: v.Failed, Unknown: v.Unknown, Final: v.Final,
		Class: v.Class, Status: int16(status), Text: v.Text, Wire: wire, Place: -1,
	})
}

// Unanswered is what became of events whose request got no answer: unknown, or failed if it was never written.
func Unanswered(b *load.Batch, sent time.Duration, class load.Class, text string) Verdict {
	if sent < 0 {
		return Verdict{Failed: b.Events, Class: class, Text: "never written: " + text}
	}
	return Verdict{Unknown: b.Events, Class: class, Text: text}
}

// Ready calls Ready if it is due.
func (l *State) Ready(now time.Duration) {
	if l.ReadyDue && !l.Closed && l.Accepts(now) {
		l.ReadyDue = false
		if l.Earliest > 0 {
			now = l.Earliest // the delay in reading is the generator's, not the system's
		}
		l.S.Sink.Ready(l.Num, now)
	}
}

// mostPause is the longest pause: a server that asks for more is asked again then, so that a run does not wait for
// hours.
const mostPause = time.Minute

// Pause pauses the lane for as long as the server asked, up to mostPause.
func (l *State) Pause(now time.Duration, wait time.Duration) {
	wait = min(wait, mostPause)
	l.Metrics.Throttled++
	l.Metrics.Paused += max(0, now+wait-max(l.PausedUntil, now)) // consecutive answers ask for overlapping pauses
	l.PausedUntil = max(l.PausedUntil, now+wait)
	time.AfterFunc(wait, func() {
		l.Mu.Lock()
		defer l.Mu.Unlock()
		if !l.Closed {
			l.Ready(l.S.Sink.Now())
		}
	})
}

// Count implements Runner.
func (l *State) Count() (string, Metrics) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Server, l.Metrics
}

// IsClosed reports whether the lane is over.
func (l *State) IsClosed() bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Closed
}

// Down notes that an attempt to connect failed. giveUp fails what waits, after a long time without a connection.
func (l *State) Down(err error, giveUp func(now time.Duration, text string)) {
	now := l.S.Sink.Now()
	l.S.Failures.Note(l.Server, now, l.S.Redactor.Line(err.Error()))
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Outage.Note(now, fmt.Errorf("connect to %s: %w", l.Server, err))
	if l.Outage.Longer(now, l.S.Timeout) {
		l.FailuresLeft = FailuresPerAttempt
		giveUp(now, l.S.Redactor.Line(l.Outage.Err.Error()))
		l.Deliver()
	}
	l.Ready(now)
}

// Loss is the class and text of what was in flight on a connection that ended.
func (l *State) Loss(cause error) (load.Class, string) {
	var p *ProtocolError
	switch {
	case errors.Is(cause, conn.ErrTimeout):
		return load.Timeout, cause.Error()
	case errors.As(cause, &p):
		return load.Protocol, l.S.Redactor.Line(cause.Error())
	case errors.Is(cause, conn.ErrClosed):
		return load.Canceled, "connection lost: " + cause.Error()
	case conn.IsConnectionClosed(cause):
		return load.Refused, "connection lost: " + ErrServerClosed.Error()
	}
	return load.Refused, "connection lost: " + l.S.Redactor.Line(cause.Error())
}

// Up notes that the lane has a connection.
func (l *State) Up(now time.Duration) {
	l.FailuresLeft = 0
	l.Outage.Over(now, l.S.Happened)
	l.S.Note(1)
}

// Lost notes that a connection has ended, after what was in flight on it was given up.
func (l *State) Lost(now time.Duration, cause error) {
	l.S.Note(-1)
	l.Outage.Note(now, cause)
	if !l.Closed {
		l.Metrics.Reconnects++
		l.S.Happened("connection lost", time.Now(), 0)
	}
	l.Deliver()
	l.Ready(now)
}

// A Connection is one connection of a lane, as the lane's life needs it.
type Connection interface {
	// Lost cleans up when the connection is no longer read. It reports whether it was usable.
	Lost() (served bool)
	Release()
}

// Run makes a lane's connections until the context ends: use starts to use one, also the first, which may be nil;
// check, if it is not nil, refuses and closes one that was just made; giveUp is that of Down.
func Run[K any, P interface {
	*K
	Connection
	Reading() *Reading
}](ctx context.Context, l *State, first net.Conn, use func(net.Conn) *K, check func(net.Conn) error, giveUp func(now time.Duration, text string)) {
	var k *K
	if first != nil && l.S.AtOnce(l.Num) { // events may be due before a busy machine runs another goroutine
		k, first = use(first), nil
	}
	keeper := conn.Keeper[K]{
		First: conn.ReconnectFirst,
		Dial: func(ctx context.Context) (*K, error) {
			if l.IsClosed() {
				return nil, conn.ErrClosed
			}
			nc, err := l.S.Dialer.Dial(ctx, l.Server)
			if err == nil && check != nil {
				err = check(nc)
			}
			if err != nil {
				return nil, err
			}
			return use(nc), nil
		},
		Failed: func(err error) { l.Down(err, giveUp) },
		Serve: func(k *K) conn.Next {
			P(k).Reading().wait()
			served := P(k).Lost()
			P(k).Release()
			switch {
			case l.IsClosed():
				return conn.Never
			case served:
				return conn.AtOnce
			}
			return conn.AfterPause // a connection that is accepted and closed at once is as bad as none
		},
	}
	l.S.Go(func() {
		if first != nil {
			k = use(first)
		}
		keeper.Run(ctx, k)
	})
}

// A Reading reads the answers of a connection, on a poller or on a goroutine.
type Reading struct {
	reader   conn.Reader
	released chan struct{} // closed when a poller no longer reads the connection; nil: none does
}

// Start attaches a link to the lane's poller, and begins to read. The functions are those of conn.Reader.
func (r *Reading) Start(l *State, k *conn.Link, received func(b []byte, came socket.Arrival) (used int, err error), ended func(err error)) {
	k.Attach(l.S.Poller(l.Num))
	r.reader = conn.Reader{
		Conn: k.Conn, Now: l.S.Sink.Now, Received: received, Ended: ended, Read: func(n int) { l.S.Read.Add(uint64(n)) }, Small: true,
	}
	released := make(chan struct{})
	if r.reader.Start(func() { close(released) }) {
		r.released = released
	}
}

// wait waits until the connection has ended.
func (r *Reading) wait() {
	if r.released != nil {
		<-r.released
	} else {
		r.reader.Run()
	}
}

// A ProtocolError is something that the protocol does not allow a server.
type ProtocolError struct{ Err error }

func (e *ProtocolError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ProtocolError) Unwrap() error { return e.Err }
