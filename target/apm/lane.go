package apm

import (
	"net"
	"sync"
	"time"

	"carronade/internal/wire/apm"
	"carronade/load"
)

// A lane is one connection to one base URL, made again whenever it is lost, and
// the requests that are in flight on it, whose answers come in the order in
// which they were sent. It implements load.Lane.
type lane struct {
	s      *session
	id     int
	base   string
	cycles []*cycle // by stream; those of the sending thread's streams are its own

	first net.Conn // made when the session was opened, until the run starts

	mu sync.Mutex // over all below

	// The requests in flight: a ring, those head..tail-1 by running number.
	ring []request
	head uint64 // the oldest unanswered
	next uint64 // the first not written whole
	tail uint64

	link    *link // nil while there is none
	answer  apm.Answer
	out     []load.Outcome // decided and not handed over
	wanting bool           // said that it is full, and owes a Ready
	since   time.Duration  // while answers are taken: the earliest that they can have arrived; 0: not known
	closed  bool
	quiet   time.Duration // asked to be quiet until then
	downAt  time.Duration // since when there is no connection
	downErr error
	doomed  int // batches to take and fail until the next attempt to connect
	metrics metrics
}

// mostDoomed is how many batches fail with each attempt to connect to a server
// that has been away for long: enough that a run ends, and not as many as a
// loop can fail.
const mostDoomed = 100

// A request is a batch in flight.
type request struct {
	batch          load.Batch
	encodedRequest *encodedRequest
	sent           time.Duration // its first byte was written; -1
}

// metrics are what a connection did.
type metrics struct {
	requests, events, bytes, wire, reconnects uint64
	quiet                                     time.Duration
	throttled                                 uint64
}

func (l *lane) at(n uint64) *request { return &l.ring[n%uint64(len(l.ring))] }

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
			l.wanting = true
			break
		}
		s := &batches[i]
		taken++
		if l.link == nil { // down for long
			l.doomed--
			s.Bytes = l.cycles[s.Stream].plain(s.First, int(s.Events))
			l.complete(request{batch: *s, sent: -1}, now, verdict{failed: s.Events, class: load.Refused, text: l.s.cfg.veil.line(l.downErr.Error())}, 0)
			continue
		}
		r, err := l.cycles[s.Stream].take(s.First, int(s.Events), l.s.wall.Add(now).UnixMicro())
		if err != nil {
			l.complete(request{batch: *s, sent: -1}, now, verdict{failed: s.Events, class: load.Rejected, text: l.s.cfg.veil.line(err.Error())}, 0)
			continue
		}
		s.Bytes = int64(r.body.Plain)
		*l.at(l.tail) = request{batch: *s, encodedRequest: r, sent: -1}
		l.tail++
	}
	return taken
}

// accepts reports whether a batch may be taken. Without a connection none is, so
// that events wait where they are counted as waiting; after a long time without
// one they are taken and fail, so that a run against a server that never comes
// back ends.
func (l *lane) accepts(now time.Duration) bool {
	switch k := l.link; {
	case k == nil: // what another connection can send waits for it
		return l.doomed > 0 && (l.s.connected.Load() == 0 || !l.s.Shares())
	case now < l.quiet:
		return false
	default:
		// Where an answer overtook the writer's own return, what it writes is
		// still in its hands.
		return !k.dead && l.tail-l.head < uint64(len(l.ring)) && l.head <= l.next
	}
}

// Flush implements load.Lane.
func (l *lane) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.link != nil {
		l.link.pump()
	}
	l.deliver()
}

// complete decides what became of a request.
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
		r.encodedRequest.busy.Store(false)
	}
	l.out = append(l.out, load.Outcome{
		Batch: r.batch, Lane: int32(l.id), Sent: r.sent, Done: now, Earliest: l.since,
		Acked: v.acked, Failed: v.failed, Unknown: v.unknown,
		Class: v.class, Status: int16(status), Text: v.text, Wire: wire, Place: -1,
	})
}

// deliver hands over what was decided.
func (l *lane) deliver() {
	if len(l.out) > 0 {
		l.s.sink.Complete(l.out)
		clear(l.out)
		l.out = l.out[:0]
	}
}

// ready keeps the promise of a lane that was full.
func (l *lane) ready(now time.Duration) {
	if l.wanting && !l.closed && l.accepts(now) {
		l.wanting = false
		if l.since > 0 {
			now = l.since // that nobody read is not the system's doing
		}
		l.s.sink.Ready(l.id, now)
	}
}

// give completes what is in flight without an answer: what was written, in part or
// whole, is unknown. The rest waits for the next connection, unless all is to
// go: then it failed.
func (l *lane) give(now time.Duration, class load.Class, text string, all bool) {
	k := l.link
	for ; l.head < l.tail; l.head++ {
		r := *l.at(l.head)
		if r.sent < 0 && k != nil && k.writing && l.head < k.upto {
			r.sent = k.began()
		}
		v := verdict{unknown: r.batch.Events, class: class, text: text}
		if r.sent < 0 {
			if !all {
				break
			}
			v = verdict{failed: r.batch.Events, class: class, text: "never written: " + text}
		}
		*l.at(l.head) = request{}
		l.complete(r, now, v, 0)
	}
	l.next = l.head
}

// Close implements load.Lane: what is unanswered is given up.
func (l *lane) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.s.sink != nil {
		l.give(l.s.sink.Now(), load.Canceled, load.TextUnanswered, true)
		l.deliver()
	}
	if l.link != nil {
		l.link.kill(errClosed)
	}
	return nil
}

// hush keeps a lane quiet for as long as the server asked for.
func (l *lane) hush(now time.Duration, wait time.Duration) {
	l.metrics.throttled++
	l.metrics.quiet += max(0, now+wait-max(l.quiet, now)) // answers in a row ask for the same while
	l.quiet = max(l.quiet, now+wait)
	time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.closed {
			l.ready(l.s.sink.Now())
		}
	})
}
