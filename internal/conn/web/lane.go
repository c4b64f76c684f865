package web

import (
	"context"
	"net"
	"sync"
	"time"

	"carronade/internal/conn"
	"carronade/load"
)

// A lane is one connection to one base URL, made again whenever it is lost, and
// its requests in flight. Their answers come in the order of the requests. It
// implements load.Lane.
type lane struct {
	s       *Lanes
	id      int
	base    string
	sources []Source // by stream; Fire uses those of its thread's streams

	first net.Conn // made when the session was opened; nil after the run's start

	mu sync.Mutex // guards all fields below

	conn.Window[request]       // the requests in flight
	link                 *link // nil while there is none
	answer               Answer
	out                  []load.Outcome // not delivered yet
	readyDue             bool           // Fire was refused, so Ready is due
	earliest             time.Duration  // while answers are processed: their earliest possible arrival; 0: not known
	closed               bool
	pausedUntil          time.Duration // the server asked to send nothing until then
	outage               conn.Outage
	failuresLeft         int // batches to accept and fail until the next attempt to connect
	metrics              Metrics
}

// failuresPerAttempt is how many batches fail with each attempt to connect to a
// server that has long been unreachable: enough that a run ends, but not at full
// speed.
const failuresPerAttempt = 100

// A request is a batch in flight.
type request struct {
	batch    load.Batch
	prepared Request
	sent     time.Duration // when its first byte was written; -1: not yet
}

// ID implements load.Lane.
func (l *lane) ID() int { return l.id }

// Room implements load.Lane.
func (l *lane) Room(stream int32, first uint64) int {
	return l.sources[stream].Room(first)
}

// Fire implements load.Lane.
func (l *lane) Fire(batches []load.Batch) (taken int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.s.Sink.Now()
	for i := range batches {
		if l.closed || !l.accepts(now) {
			l.readyDue = true
			break
		}
		s := &batches[i]
		taken++
		if l.link == nil { // long without a connection
			l.failuresLeft--
			s.Bytes = l.sources[s.Stream].Plain(s.First, int(s.Events))
			l.complete(request{batch: *s, sent: -1}, now, Verdict{Failed: s.Events, Class: load.Refused, Text: l.s.Redactor.Line(l.outage.Err.Error())}, 0)
			continue
		}
		r, err := l.sources[s.Stream].Prepare(s.First, int(s.Events), l.s.Wall.Add(now))
		if s.Withheld = l.s.Withholds(s, err); s.Withheld {
			continue
		}
		if err != nil {
			l.complete(request{batch: *s, sent: -1}, now, Verdict{Failed: s.Events, Class: load.Rejected, Text: l.s.Redactor.Line(err.Error())}, 0)
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
		return l.failuresLeft > 0 && l.s.Alone()
	case now < l.pausedUntil:
		return false
	default:
		// If an answer came before its write returned, the write still uses the
		// request.
		return !k.Dead() && l.Tail-l.Head < uint64(l.s.Depth) && l.Head <= l.Next
	}
}

// Flush implements load.Lane.
func (l *lane) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.link != nil {
		l.link.PumpTogether()
	}
	l.deliver()
}

// complete adds the outcome of a request.
func (l *lane) complete(r request, now time.Duration, v Verdict, status int) {
	wire := int64(0)
	if r.prepared != nil {
		if r.sent >= 0 {
			wire = int64(len(r.prepared.Bytes()))
			l.metrics.Requests++
			l.metrics.Events += uint64(r.batch.Events)
			l.metrics.Bytes += uint64(r.batch.Bytes)
			l.metrics.Wire += uint64(wire)
		}
		if k := l.link; k != nil && l.BeingWritten(l.Head) {
			k.answeredEarly = append(k.answeredEarly, r.prepared)
		} else {
			r.prepared.Release()
		}
	}
	l.out = append(l.out, load.Outcome{
		Batch: r.batch, Lane: int32(l.id), Sent: r.sent, Done: now, Earliest: l.earliest,
		Acked: v.Acked, Failed: v.Failed, Unknown: v.Unknown, Final: v.Final,
		Class: v.Class, Status: int16(status), Text: v.Text, Wire: wire, Place: -1,
	})
}

// deliver passes the outcomes to the sink.
func (l *lane) deliver() {
	if len(l.out) > 0 {
		l.s.Sink.Complete(l.out)
		clear(l.out)
		l.out = l.out[:0]
	}
}

// ready calls Ready if it is due.
func (l *lane) ready(now time.Duration) {
	if l.readyDue && !l.closed && l.accepts(now) {
		l.readyDue = false
		if l.earliest > 0 {
			now = l.earliest // the delay in reading is the generator's, not the system's
		}
		l.s.Sink.Ready(l.id, now)
	}
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.s.Sink != nil {
		now := l.s.Sink.Now()
		l.giveUp(now, load.Canceled, load.TextUnanswered, true)
		l.outage.Over(now, l.s.Happened)
		l.deliver()
	}
	if l.link != nil {
		l.link.Kill(conn.ErrClosed)
	}
	return nil
}

// pause pauses the lane for as long as the server asked.
func (l *lane) pause(now time.Duration, wait time.Duration) {
	l.metrics.Throttled++
	l.metrics.Paused += max(0, now+wait-max(l.pausedUntil, now)) // consecutive answers ask for overlapping pauses
	l.pausedUntil = max(l.pausedUntil, now+wait)
	time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.closed {
			l.ready(l.s.Sink.Now())
		}
	})
}

// Run implements Runner. It uses the first connection at once: events may be due
// before a busy machine runs another goroutine.
func (l *lane) Run(ctx context.Context) {
	first := l.first
	l.first = nil
	var k *link
	if first != nil && l.s.AtOnce(l.id) {
		k, first = l.use(first), nil
	}
	l.s.Go(func() {
		if first != nil {
			k = l.use(first)
		}
		l.keepConnected(ctx, k)
	})
}

// Count implements Runner.
func (l *lane) Count() (string, Metrics) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.base, l.metrics
}
