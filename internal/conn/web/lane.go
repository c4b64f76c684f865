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
		s := &batches[i]
		taken++
		if l.link == nil { // long without a connection
			l.FailuresLeft--
			s.Bytes = l.sources[s.Stream].Plain(s.First, int(s.Events))
			l.complete(request{batch: *s, sent: -1}, now, Verdict{Failed: s.Events, Class: load.Refused, Text: l.S.Redactor.Line(l.Outage.Err.Error())}, 0)
			continue
		}
		r, err := l.sources[s.Stream].Prepare(s.First, int(s.Events), l.S.Wall.Add(now))
		if s.Withheld = l.S.Withholds(s, err); s.Withheld {
			continue
		}
		if err != nil {
			l.complete(request{batch: *s, sent: -1}, now, Verdict{Failed: s.Events, Class: load.Rejected, Text: l.S.Redactor.Line(err.Error())}, 0)
			continue
		}
		s.Bytes = r.Plain()
		l.Push(request{batch: *s, prepared: r, sent: -1})
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

// complete adds the outcome of a request.
func (l *lane) complete(r request, now time.Duration, v Verdict, status int) {
	wire := int64(0)
	if r.prepared != nil {
		if r.sent >= 0 {
			wire = int64(len(r.prepared.Bytes()))
			l.Metrics.Requests++
			l.Metrics.Events += uint64(r.batch.Events)
			l.Metrics.Bytes += uint64(r.batch.Bytes)
			l.Metrics.Wire += uint64(wire)
		}
		if k := l.link; k != nil && l.BeingWritten(l.Head) {
			k.answeredEarly = append(k.answeredEarly, r.prepared)
		} else {
			r.prepared.Release()
		}
	}
	l.Out = append(l.Out, load.Outcome{
		Batch: r.batch, Lane: int32(l.Num), Sent: r.sent, Done: now, Earliest: l.Earliest,
		Acked: v.Acked, Failed: v.Failed, Unknown: v.Unknown, Final: v.Final,
		Class: v.Class, Status: int16(status), Text: v.Text, Wire: wire, Place: -1,
	})
}

// giveUp completes requests in flight without an answer: those that were written,
// completely or in part, are unknown. The others wait for the next connection, or
// fail if all is set.
func (l *lane) giveUp(now time.Duration, class load.Class, text string, all bool) {
	k := l.link
	for l.Head < l.Tail {
		r := *l.At(l.Head)
		if r.sent < 0 && k != nil && l.BeingWritten(l.Head) {
			r.sent = k.Out.Began()
		}
		v := Verdict{Unknown: r.batch.Events, Class: class, Text: text}
		if r.sent < 0 {
			if !all {
				break
			}
			v = Verdict{Failed: r.batch.Events, Class: class, Text: "never written: " + text}
		}
		l.complete(r, now, v, 0)
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
