package web

import (
	"context"
	"net"
	"time"

	"carronade/internal/conn"
	"carronade/load"
)

// A lane is one connection to one base URL, made again whenever it is lost, and
// its requests in flight. Their answers come in the order of the requests. It
// implements load.Lane.
type lane struct {
	State
	sources []Source // by stream; Fire uses those of its thread's streams

	first net.Conn // made when the session was opened; nil after the run's start

	conn.Window[request]       // the requests in flight
	link                 *link // nil while there is none
	answer               Answer
}

// A request is a batch in flight.
type request struct {
	batch    load.Batch
	prepared Request
	sent     time.Duration // when its first byte was written; -1: not yet
}

// Room implements load.Lane.
func (l *lane) Room(stream int32, first uint64) int {
	return l.sources[stream].Room(first)
}

// Fire implements load.Lane.
func (l *lane) Fire(batches []load.Batch) (taken int) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	now := l.S.Sink.Now()
	for i := range batches {
		if l.Closed || !l.accepts(now) {
			l.ReadyDue = true
			break
		}
		b := &batches[i]
		taken++
		if r := l.Take(b, l.sources[b.Stream], l.link != nil, now); r != nil {
			l.Push(request{batch: *b, prepared: r, sent: -1})
		}
	}
	return taken
}

// accepts reports whether the lane accepts a batch. Without a connection it
// accepts none, so that events wait in the engine's queue, where they count as
// waiting. After a long time without one it accepts batches and fails them, so
// that a run ends even if the server never comes back.
func (l *lane) accepts(now time.Duration) bool {
	switch k := l.link; {
	case k == nil: // batches that another connection can send wait for it
		return l.FailuresLeft > 0 && l.S.Alone()
	case now < l.PausedUntil:
		return false
	default:
		// If an answer came before its write returned, the write still uses the
		// request.
		return !k.Dead() && l.Tail-l.Head < uint64(l.S.Depth) && l.Head <= l.Next
	}
}

// Flush implements load.Lane.
func (l *lane) Flush() {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.link != nil {
		l.link.PumpTogether()
	}
	l.Deliver()
}

// complete adds the outcome of the oldest request.
func (l *lane) complete(r *request, now time.Duration, v Verdict, status int) {
	l.Complete(&r.batch, r.sent, now, v, status, int64(len(r.prepared.Bytes())))
	if k := l.link; k != nil && l.BeingWritten(l.Head) {
		k.answeredEarly = append(k.answeredEarly, r.prepared)
	} else {
		r.prepared.Release()
	}
}

// giveUp completes requests in flight without an answer: those that were written,
// completely or in part, are unknown. The others wait for the next connection, or
// fail if all is set.
func (l *lane) giveUp(now time.Duration, class load.Class, text string, all bool) {
	k := l.link
	for l.Head < l.Tail {
		r := l.At(l.Head)
		if r.sent < 0 && k != nil && l.BeingWritten(l.Head) {
			r.sent = k.Out.Began()
		}
		if r.sent < 0 && !all {
			break
		}
		l.complete(r, now, Unanswered(&r.batch, r.sent, class, text), 0)
		l.Pop()
	}
	l.Rewind()
}

// Close implements load.Lane: it gives up unanswered requests.
func (l *lane) Close() error {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Closed {
		return nil
	}
	l.Closed = true
	if l.S.Sink != nil {
		now := l.S.Sink.Now()
		l.giveUp(now, load.Canceled, load.TextUnanswered, true)
		l.Outage.Over(now, l.S.Happened)
		l.Deliver()
	}
	if l.link != nil {
		l.link.Kill(conn.ErrClosed)
	}
	return nil
}

// Run implements Runner.
func (l *lane) Run(ctx context.Context) {
	first := l.first
	l.first = nil
	Run(ctx, &l.State, first, l.use, nil, func(now time.Duration, text string) { l.giveUp(now, load.Refused, text, true) })
}
