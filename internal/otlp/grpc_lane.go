package otlp

import (
	"context"
	"net"
	"time"

	"golang.org/x/net/http2/hpack"

	"carronade/internal/conn"
	"carronade/internal/conn/framing"
	"carronade/internal/conn/web"
	"carronade/load"
)

// A grpcLane is one connection of HTTP/2, made again whenever it is lost, and its calls of gRPC in flight,
// each a stream. It implements web.Runner.
type grpcLane struct {
	web.State
	sources []web.Source // by stream of events; Fire uses those of its thread's streams
	first   net.Conn     // made when the session was opened; nil after the run's start

	conn.Window[frame]           // what is to be written
	link               *grpcLink // nil while there is none
	open               map[uint32]*call
	oldest, newest     *call   // of the open calls, by when they were started
	toStart            []*call // accepted and not started: they wait for a connection, or for one to end
	blocked            []*call // started, and waiting for the server's windows
	free               []*call

	// What the server of this connection has said.
	window     int64 // bytes that it takes on the connection
	initial    int64 // and on each stream
	mostFrame  int
	mostOpen   int
	draining   bool // no more streams on this connection
	nextStream uint32
	received   int // bytes of answers since their last window update
	controls   int // frames in the queue that are not of calls

	decoder *hpack.Decoder
	block   []byte // of headers that came in part
	ofBlock *call  // nil: they are of no open call
	ends    bool   // the stream ends with them
}

// A frame is one to be written.
type frame struct {
	head    [framing.HeadSize]byte
	headed  bool // it has a head; otherwise the payload has it
	payload []byte
	of      *call // whose bytes the payload is; nil: of the connection
	begins  bool  // it is the first of a call
}

// A call is a request in flight.
type call struct {
	id         uint32
	batch      load.Batch
	request    *request
	sent       time.Duration // when its first byte was written; -1: not yet
	rest       []byte        // of the message that is not queued
	window     int64         // bytes that the server takes
	queued     int           // frames in the queue
	done       bool
	prev, next *call

	answer
}

// An answer is what the server has said about a call.
type answer struct {
	status   int    // of HTTP
	code     int    // of gRPC, -1: none
	message  string // percent-encoded
	details  string // in base64
	encoding string // of a message that is compressed
	body     []byte // of the answer, with its prefix
	received int    // bytes of it
}

// mostAnswer is how many bytes of an answer are kept.
const mostAnswer = 4 << 10

func newGRPCLane(s *session, id int, sources []web.Source, first net.Conn) *grpcLane {
	l := &grpcLane{State: web.State{S: &s.Lanes, Num: id, Server: s.Base(id)}, sources: sources, first: first, open: map[uint32]*call{}}
	l.Accepts = l.accepts
	return l
}

// Room implements load.Lane.
func (l *grpcLane) Room(stream int32, first uint64) int { return l.sources[stream].Room(first) }

// inFlight is the number of accepted calls.
func (l *grpcLane) inFlight() int { return len(l.open) + len(l.toStart) }

// Fire implements load.Lane.
func (l *grpcLane) Fire(batches []load.Batch) (taken int) {
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
			l.toStart = append(l.toStart, l.newCall(b, r.(*request)))
		}
	}
	l.start()
	return taken
}

func (l *grpcLane) newCall(b *load.Batch, r *request) *call {
	c := &call{}
	if n := len(l.free); n > 0 {
		c = l.free[n-1]
		l.free = l.free[:n-1]
	}
	*c = call{batch: *b, request: r, sent: -1, answer: answer{code: -1, body: c.body[:0]}}
	return c
}

// accepts reports whether the lane accepts a batch. Without a connection it accepts none, as lanes of
// HTTP/1.1 do.
func (l *grpcLane) accepts(now time.Duration) bool {
	switch k := l.link; {
	case k == nil:
		return l.FailuresLeft > 0 && l.S.Alone()
	case now < l.PausedUntil:
		return false
	default:
		return !k.Dead() && !l.draining && l.inFlight() < min(l.S.Depth, l.mostOpen) && l.window > 0
	}
}

// Flush implements load.Lane.
func (l *grpcLane) Flush() {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.link != nil {
		l.link.PumpTogether()
	}
	l.Deliver()
}

// lastStream is the last stream of a connection, long before the numbers end.
const lastStream = 1 << 30

// start begins the calls that wait, as far as the server allows.
func (l *grpcLane) start() {
	if l.link == nil || l.link.Dead() {
		return
	}
	n := 0
	for ; n < len(l.toStart) && len(l.open) < l.mostOpen && !l.draining; n++ {
		c := l.toStart[n]
		c.id, c.window = l.nextStream, l.initial
		l.nextStream += 2
		l.draining = l.nextStream > lastStream
		l.open[c.id] = c
		if c.prev = l.newest; c.prev != nil {
			c.prev.next = c
		} else {
			l.oldest = c
		}
		l.newest = c
		c.rest = c.request.bytes[c.request.start-framing.MessageHead:]
		block, typ := c.request.bytes[:c.request.start-framing.MessageHead], uint8(framing.Headers)
		for ; len(block) > l.mostFrame; typ = framing.Continuation {
			l.push(c, typ, 0, block[:l.mostFrame])
			block = block[l.mostFrame:]
		}
		l.push(c, typ, framing.FlagEndHeaders, block)
		if !l.send(c) {
			l.blocked = append(l.blocked, c)
		}
	}
	l.toStart = append(l.toStart[:0], l.toStart[n:]...)
}

// push queues a frame of a call.
func (l *grpcLane) push(c *call, typ, flags uint8, payload []byte) {
	f := frame{headed: true, payload: payload, of: c, begins: typ == framing.Headers}
	framing.PutHead(&f.head, len(payload), typ, flags, c.id)
	c.queued++
	l.Push(f)
}

// mostControls bounds the frames that answer a server's, such as pings, if it does not read them.
const mostControls = 1 << 15

// control queues a frame of the connection, or one that ends a stream.
func (l *grpcLane) control(bytes []byte) {
	l.controls++
	l.Push(frame{payload: bytes})
}

// send queues as much of a message as the server takes; all: the whole rest.
func (l *grpcLane) send(c *call) (all bool) {
	for len(c.rest) > 0 {
		n := min(len(c.rest), l.mostFrame, int(c.window), int(l.window))
		if n <= 0 {
			return false
		}
		flags := uint8(0)
		if n == len(c.rest) {
			flags = framing.FlagEndStream
		}
		l.push(c, framing.Data, flags, c.rest[:n])
		c.rest = c.rest[n:]
		c.window -= int64(n)
		l.window -= int64(n)
	}
	return true
}

// unblock sends on after a window has grown.
func (l *grpcLane) unblock() {
	kept := l.blocked[:0]
	for _, c := range l.blocked {
		if !c.done && !l.send(c) {
			kept = append(kept, c)
		}
	}
	clear(l.blocked[len(kept):])
	l.blocked = kept
}

// end completes an open call.
func (l *grpcLane) end(c *call, now time.Duration, v web.Verdict) {
	delete(l.open, c.id)
	if l.ofBlock == c { // the rest of the headers belongs to no call
		l.ofBlock = nil
	}
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.oldest = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		l.newest = c.prev
	}
	c.prev, c.next = nil, nil
	if len(c.rest) > 0 { // the server does not wait for it
		c.rest = nil
		l.control(framing.AppendNumber(nil, framing.Reset, c.id, framing.CodeCancel))
	}
	l.complete(c, now, v)
}

// complete adds the outcome of a call.
func (l *grpcLane) complete(c *call, now time.Duration, v web.Verdict) {
	c.done = true
	l.Complete(&c.batch, c.sent, now, v, 0, int64(len(c.request.bytes)))
	l.recycle(c)
}

// recycle gives back a call and its request, once neither an answer nor a write needs them.
func (l *grpcLane) recycle(c *call) {
	if c.done && c.queued == 0 && c.request != nil {
		c.request.Release()
		c.request = nil
		l.free = append(l.free, c)
	}
}

// giveUp completes calls without an answer: those that were written, completely or in part, are unknown. The
// others wait for the next connection, or fail if all is set. busy says that a write may still use their bytes.
func (l *grpcLane) giveUp(now time.Duration, class load.Class, text string, all, busy bool) {
	k := l.link
	var again []*call
	for n := l.Head; n < l.Tail; n++ {
		if f := l.At(n); f.of != nil {
			if f.begins && f.of.sent < 0 && k != nil && l.BeingWritten(n) {
				f.of.sent = k.Out.Began()
			}
			f.of.queued--
		}
	}
	for l.Rewind(); l.Head < l.Tail; {
		l.Pop()
	}
	l.controls = 0
	l.Rewind()
	for c := l.oldest; c != nil; c = l.oldest {
		c.rest = nil
		if c.sent < 0 && !all {
			l.oldest = c.next
			c.prev, c.next = nil, nil
			c.answer = answer{code: -1, body: c.body[:0]}
			again = append(again, c)
			continue
		}
		l.oldest = c.next
		if busy {
			c.queued++ // it is never recycled
		}
		l.complete(c, now, web.Unanswered(&c.batch, c.sent, class, text))
	}
	l.newest, l.blocked = nil, nil
	clear(l.open)
	l.toStart = append(again, l.toStart...)
	if all {
		for _, c := range l.toStart {
			l.complete(c, now, web.Unanswered(&c.batch, c.sent, class, text))
		}
		l.toStart = nil
	}
}

// Close implements load.Lane: it gives up unanswered calls.
func (l *grpcLane) Close() error {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Closed {
		return nil
	}
	l.Closed = true
	if l.S.Sink != nil {
		now := l.S.Sink.Now()
		l.giveUp(now, load.Canceled, load.TextUnanswered, true, l.link != nil && l.link.Writing())
		l.Outage.Over(now, l.S.Happened)
		l.Deliver()
	}
	if l.link != nil {
		l.link.Kill(conn.ErrClosed)
	}
	if l.first != nil {
		l.first.Close()
	}
	return nil
}

// Run implements web.Runner.
func (l *grpcLane) Run(ctx context.Context) {
	first := l.first
	l.first = nil
	web.Run(ctx, &l.State, first, l.use, checkHTTP2, func(now time.Duration, text string) { l.giveUp(now, load.Refused, text, true, false) })
}
