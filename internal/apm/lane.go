package apm

import (
	"net"
	"sync"
	"time"

	"carronade/internal/apm/wire"
	"carronade/internal/conn"
	"carronade/load"
)

// A lane is one connection to one base URL, made again whenever it is lost, and
// its requests in flight. Their answers come in the order of the requests. It
// implements load.Lane.
type lane struct {
	s      *session
	id     int
	base   string
	cycles []*cycle // by stream; Fire uses those of its thread's streams

	first net.Conn // made when the session was opened; nil after the run's start

	mu sync.Mutex // guards all fields below

	conn.Window[request]       // the requests in flight
	link                 *link // nil while there is none
	answer               wire.Answer
	out                  []load.Outcome // not delivered yet
	readyDue             bool           // Fire was refused, so Ready is due
	earliest             time.Duration  // while answers are processed: their earliest possible arrival; 0: not known
	closed               bool
	pausedUntil          time.Duration // the server asked to send nothing until then
	outage               conn.Outage
	failuresLeft         int // batches to accept and fail until the next attempt to connect
	metrics              metrics
}

// failuresPerAttempt is how many batches fail with each attempt to connect to a
// server that has long been unreachable: enough that a run ends, but not at full
// speed.
const failuresPerAttempt = 100

// A request is a batch in flight.
type request struct {
	batch          load.Batch
	encodedRequest *encodedRequest
	sent           time.Duration // when its first byte was written; -1: not yet
}

// metrics count what a connection did.
type metrics struct {
	requests, events, bytes, wire, reconnects uint64
	paused                                    time.Duration
	throttled                                 uint64
}

// ID implements load.Lane.
func (l *lane) ID() int { return l.id }

// Room implements load.Lane.
func (l *lane) Room(stream int32, first uint64) int {
	_, left, _ := l.cycles[stream].at(first)
	return left
}

// Fire implements load.Lane.
func (l *lane) Fire(batches []load.Batch) (taken int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.s.sink.Now()
	for i := range batches {
		if l.closed || !l.accepts(now) {
			l.readyDue = true
			break
		}
		s := &batches[i]
		taken++
		if l.link == nil { // long without a connection
			l.failuresLeft--
			s.Bytes = l.cycles[s.Stream].plainSize(s.First, int(s.Events))
			l.complete(request{batch: *s, sent: -1}, now, verdict{failed: s.Events, class: load.Refused, text: l.s.cfg.redactor.line(l.outage.Err.Error())}, 0)
			continue
		}
		r, err := l.cycles[s.Stream].prepare(s.First, int(s.Events), l.s.wall.Add(now).UnixMicro())
		if s.Withheld = l.s.withholds(s, err); s.Withheld {
			continue
		}
		if err != nil {
			l.complete(request{batch: *s, sent: -1}, now, verdict{failed: s.Events, class: load.Rejected, text: l.s.cfg.redactor.line(err.Error())}, 0)
			continue
		}
		s.Bytes = int64(r.body.Plain)
		l.Push(request{batch: *s, encodedRequest: r, sent: -1})
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
		return l.failuresLeft > 0 && (l.s.connected.Load() == 0 || !l.s.Shares())
	case now < l.pausedUntil:
		return false
	default:
		// If an answer came before its write returned, the write still uses the
		// request.
		return !k.Dead() && l.Tail-l.Head < uint64(l.s.cfg.depth) && l.Head <= l.Next
	}
}

// Capabilities implements load.Lane.
func (*lane) Capabilities() load.LaneCapabilities { return load.LaneCapabilities{} }

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
func (l *lane) complete(r request, now time.Duration, v verdict, status int) {
	wire := int64(0)
	if r.encodedRequest != nil {
		if r.sent >= 0 {
			wire = int64(len(r.encodedRequest.bytes))
			l.metrics.requests++
			l.metrics.events += uint64(r.batch.Events)
			l.metrics.bytes += uint64(r.batch.Bytes)
			l.metrics.wire += uint64(wire)
		}
		if k := l.link; k != nil && l.BeingWritten(l.Head) {
			k.answeredEarly = append(k.answeredEarly, r.encodedRequest)
		} else {
			r.encodedRequest.release()
		}
	}
	l.out = append(l.out, load.Outcome{
		Batch: r.batch, Lane: int32(l.id), Sent: r.sent, Done: now, Earliest: l.earliest,
		Acked: v.acked, Failed: v.failed, Unknown: v.unknown,
		Class: v.class, Status: int16(status), Text: v.text, Wire: wire, Place: -1,
	})
}

// deliver passes the outcomes to the sink.
func (l *lane) deliver() {
	if len(l.out) > 0 {
		l.s.sink.Complete(l.out)
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
		l.s.sink.Ready(l.id, now)
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
		v := verdict{unknown: r.batch.Events, class: class, text: text}
		if r.sent < 0 {
			if !all {
				break
			}
			v = verdict{failed: r.batch.Events, class: class, text: "never written: " + text}
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
	if l.s.sink != nil {
		now := l.s.sink.Now()
		l.giveUp(now, load.Canceled, load.TextUnanswered, true)
		l.outage.Over(now, l.s.cfg.happened)
		l.deliver()
	}
	if l.link != nil {
		l.link.Kill(conn.ErrClosed)
	}
	return nil
}

// pause pauses the lane for as long as the server asked.
func (l *lane) pause(now time.Duration, wait time.Duration) {
	l.metrics.throttled++
	l.metrics.paused += max(0, now+wait-max(l.pausedUntil, now)) // consecutive answers ask for overlapping pauses
	l.pausedUntil = max(l.pausedUntil, now+wait)
	time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.closed {
			l.ready(l.s.sink.Now())
		}
	})
}
