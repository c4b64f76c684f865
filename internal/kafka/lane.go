package kafka

import (
	"context"
	"fmt"
	"slices"
	"time"

	"carronade/internal/conn"
	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/protocol"
)

// A lane is one sender's connection to one broker, which is made again whenever it is
// lost. It implements load.Lane.
type lane struct {
	s      *sender
	id     int
	broker int32

	unflushed []*slot // taken by Fire, not yet flushed; used by the sending thread only

	// Guarded by s.mu.
	addr           string
	link           *link   // nil while there is none
	owesReady      bool    // it was full, and must call Ready
	resend         []*slot // scratch of the sender: slots to be sent again
	closed         bool
	throttledUntil time.Duration // throttled until then
	outage         conn.Outage
	metrics        cluster.BrokerMetrics
}

// ID implements load.Lane.
func (l *lane) ID() int { return l.id }

// Room implements load.Lane.
func (l *lane) Room(stream int32, first uint64) int {
	return l.s.encoder.room(stream, first)
}

// Fire implements load.Lane.
func (l *lane) Fire(batches []load.Batch) (taken int) {
	s := l.s
	now := s.p.sink.Now()
	s.mu.Lock()
	for i := range batches {
		// If the partition's leader has changed since the engine chose this
		// lane, the batch is taken in any case and goes to the new leader's
		// lane: this one may stay full for ever.
		moved := s.route(s.p.streams.Log(batches[i].Stream)).Load() != l
		if l.closed || !moved && !l.accepts(now) {
			l.owesReady = true
			break
		}
		sl := s.newSlot()
		sl.lane, sl.liveIndex = l, len(s.live)
		if s.encoder.needsBuffer {
			sl.buffer = s.newBuffer(s.encoder.template(&batches[i]))
		}
		s.live = append(s.live, sl)
		l.unflushed = append(l.unflushed, sl)
		taken++
	}
	s.mu.Unlock()
	fresh := l.unflushed[len(l.unflushed)-taken:]
	for i, sl := range fresh {
		batches[i].Bytes = s.encoder.encode(sl, &batches[i])
		sl.batch = batches[i]
		sl.log = s.p.streams.Log(batches[i].Stream)
		sl.count = batches[i].Events
		sl.sent = -1
		sl.deadline = now + s.p.cfg.DeliveryTimeout
		sl.pid, sl.epoch, sl.seq = -1, -1, -1
	}
	return taken
}

// Capabilities implements load.Lane.
func (l *lane) Capabilities() load.LaneCapabilities { return load.LaneCapabilities{Prepare: l.prepare} }

// prepare makes what a request with a batch of one event for each
// partition needs while it is in flight. Later requests use it again.
func (l *lane) prepare() {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0 // batches of a request
	for i := range s.routes {
		if s.routes[i].Load() == l {
			if n++; n == mostPrepared {
				break
			}
		}
	}
	for range n {
		s.freeSlots = append(s.freeSlots, new(slot))
	}
	r := &request{slots: make([]*slot, 0, n), segs: make([][]byte, 0, 1)}
	if k := l.link; k != nil {
		k.Reserve()
		r.framing = make([]byte, 0, k.format.MaxHead()+k.topics[0].MaxTopic()+n*(wire.MaxPartition+wire.HeaderSize+s.p.batchPool.eventSize()))
	}
	s.freeRequests = append(s.freeRequests, r)
	l.unflushed = slices.Grow(l.unflushed, n)
	s.live = slices.Grow(s.live, n)
	s.sending = slices.Grow(s.sending, n)
	s.answers = slices.Grow(s.answers, n)
	s.outcomes = slices.Grow(s.outcomes, n)
	s.dirty = slices.Grow(s.dirty, 1)
}

// mostPrepared is for how many batches a lane prepares at most.
const mostPrepared = 8

// accepts reports whether the lane accepts a batch. Without a connection it does not,
// so that events wait in the engine, which counts them as waiting. After a long time
// without a connection it accepts and fails them, so that a run ends if the broker
// does not come back.
func (l *lane) accepts(now time.Duration) bool {
	switch k := l.link; {
	case k == nil:
		return l.downTooLong(now)
	case now < l.throttledUntil || k.paused || k.term.Over(l.s.p.startTime, now):
		return false
	default:
		// What waits behind a full socket is bounded by one request.
		return !k.Flushing() || k.unsent < l.s.p.cfg.MaxRequest
	}
}

// downTooLong reports whether the lane has had no connection for longer than batches wait:
// they are taken only to fail.
func (l *lane) downTooLong(now time.Duration) bool {
	return l.link == nil && l.outage.Longer(now, l.s.maxOutage())
}

// writable reports whether requests may be written now. After a login has ended, the broker
// would close the connection: they wait for the renewal, which may be late on a busy machine.
func (l *lane) writable(now time.Duration) bool {
	k := l.link
	return k != nil && !k.Dead() && !k.paused && now >= l.throttledUntil && !k.term.Over(l.s.p.startTime, now)
}

// Flush implements load.Lane.
func (l *lane) Flush() {
	if len(l.unflushed) == 0 {
		return
	}
	s := l.s
	now := s.p.sink.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
	s.sendNew(l, l.unflushed)
	clear(l.unflushed)
	l.unflushed = l.unflushed[:0]
	s.finish()
}

// Close implements load.Lane: it gives up what is unanswered.
func (l *lane) Close() error {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	clear(l.unflushed)
	l.unflushed = nil
	if s.p.sink == nil { // never started
		if l.link != nil {
			l.link.Conn.Close()
		}
		return nil
	}
	now := s.p.sink.Now()
	s.markMaybeWritten()
	for i := len(s.live) - 1; i >= 0; i-- {
		sl := s.live[i]
		if sl.lane != l {
			continue
		}
		switch {
		case sl.maybeAppended || sl.inFlight && sl.sent >= 0:
			s.unknown(sl, now, load.Canceled, load.TextUnanswered)
		case sl.text != "": // certainly refused, and not tried again yet
			s.failed(sl, now, sl.class, sl.text)
		default:
			s.failed(sl, now, load.Canceled, load.TextUnwritten)
		}
	}
	s.dropCompleted()
	if l.broker != noLeader {
		l.outage.Over(now, s.p.cfg.Happened)
	}
	if l.link != nil {
		l.link.Kill(conn.ErrClosed)
	}
	s.deliver()
	return nil
}

// markMaybeWritten marks the slots that are being written: they may be written already.
func (s *sender) markMaybeWritten() {
	for _, l := range s.lanes {
		k := l.link
		if k == nil || !k.Writing() {
			continue
		}
		for n := max(k.Head, k.Next); n < k.End; n++ {
			for _, sl := range (*k.At(n)).slots {
				sl.maybeAppended = true
			}
		}
	}
}

// dropCompleted removes completed slots from the lists of slots to be sent.
func (s *sender) dropCompleted() {
	keep := s.later[:0]
	for _, sl := range s.later {
		if sl.liveIndex >= 0 {
			keep = append(keep, sl)
		}
	}
	clear(s.later[len(keep):])
	s.later = keep
	for i := range s.partitions {
		sh := &s.partitions[i]
		if len(sh.queue) == 0 {
			continue
		}
		n, wired := 0, 0
		for j, sl := range sh.queue {
			if sl.liveIndex < 0 {
				continue
			}
			if j < sh.inFlight {
				wired++
			}
			sh.queue[n] = sl
			n++
		}
		clear(sh.queue[n:])
		sh.queue, sh.inFlight = sh.queue[:n], wired
	}
}

// dial opens a connection that is ready for produce requests.
func (l *lane) dial(ctx context.Context) (*link, error) {
	cfg := l.s.p.cfg
	l.s.mu.Lock()
	addr, closed := l.addr, l.closed
	l.s.mu.Unlock()
	if closed {
		return nil, conn.ErrClosed
	}
	nc, term, versions, err := dialVersions(ctx, cfg, addr)
	if err != nil {
		if sink := l.s.p.sink; sink != nil && ctx.Err() == nil { // else the run has not started, or has ended
			l.s.p.absent.Note(addr, sink.Now(), err.Error())
		}
		return nil, fmt.Errorf("connect to broker %d at %s: %w", l.broker, addr, err)
	}
	most := int16(wire.MaxProduceVersion)
	v := l.s.p.metadata.view.Load()
	if !v.hasIDs() {
		most = 12
	}
	version, ok := versions.pick(wire.ProduceKey, wire.MinProduceVersion, most)
	if !ok {
		nc.Close()
		return nil, &protocol.Error{Doing: fmt.Sprintf("agree on API versions with broker %d at %s", l.broker, addr), Err: cluster.ErrTooOld, Hint: "add --engine client"}
	}
	k := newLink(l, nc, wire.ProduceFormat{
		Version: version, ClientID: cfg.ClientID, Acks: cfg.Acks,
		TimeoutMillis: int32(min(cfg.RequestTimeout.Milliseconds(), 1<<31-1)),
	}, v.topics)
	k.term = term
	return k, nil
}

// keepConnected maintains a connection until the lane or the producer is closed.
func (l *lane) keepConnected() {
	l.s.mu.Lock()
	k := l.link
	l.s.mu.Unlock()
	conn.Keeper[link]{First: conn.ReconnectFirst, Dial: l.dial, Failed: l.down, Serve: l.serve}.Run(l.s.p.ctx, k)
}

// serve uses a connection until it has ended.
func (l *lane) serve(k *link) conn.Next {
	s := l.s
	k.Attach(s.p.pollers.Of(s.id))
	if l.up(k) {
		k.run()
	}
	next := l.lost(k)
	k.Release()
	return next
}

// down notes that the connection is lost.
func (l *lane) down(err error) {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.p.sink.Now()
	l.outage.Note(s.now, err)
	s.p.metadata.ask()
	l.ready(s.now)
}

// up starts to use a connection. False: the lane has been closed.
func (l *lane) up(k *link) bool {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.p.sink.Now()
	l.link = k
	l.outage.Over(s.now, s.p.cfg.Happened)
	k.startedAt = s.now
	if l.closed {
		k.Kill(conn.ErrClosed)
		return false
	}
	k.Watch(s.p.cfg.RequestTimeout)
	s.dispatch()
	l.ready(s.now)
	s.finish()
	return true
}

// ready calls Ready if the lane was full and has room again.
func (l *lane) ready(now time.Duration) {
	if l.owesReady && !l.closed && l.accepts(now) {
		l.owesReady = false
		if l.s.earliestArrival > 0 {
			now = l.s.earliestArrival // the time until the answers were read is the generator's delay
		}
		l.s.p.sink.Ready(l.id, now)
	}
}
