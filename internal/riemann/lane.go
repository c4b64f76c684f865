package riemann

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/socket"
	"carronade/load"
	"carronade/measure"
)

// A lane is a client with one connection, over TCP or TLS. Fire encodes
// messages into a buffer of the sending thread. Flush queues them for the link,
// which writes them. The reader counts the answers, which come in the order of
// the messages.
//
// Only the sending thread uses its own fields. mu guards all others. It is
// released during write calls.
type lane struct {
	id   int
	cfg  *config
	addr string
	sink load.Sink
	wall time.Time // of the run's start

	poller    func(lane int) *socket.Poller // of the lane's thread; nil, or returning nil: the thread has none
	connected *atomic.Int32                 // clients that have a connection; nil: no other client sends this one's events

	web framing // nil: frames of protocol buffers

	// Fields of the sending thread.
	encoders []*encoder // by stream
	fill     []byte     // messages encoded and not queued yet; borrowed, like out and waiting
	fresh    *messages  // the same messages; nil: none

	ctx    context.Context // of its goroutines
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	pause  time.Duration // before the last attempt to connect; only for keepConnected

	mu       sync.Mutex
	link     *link // nil while there is none
	closed   bool
	readyDue bool // Fire was refused for lack of room, so Ready is due
	outage   conn.Outage

	// The stream, over all connections: messages are numbered in the order in
	// which they are queued. Unwritten messages are in two buffers, so that one
	// can be written while the other fills; both begin at a message's start.
	queue          runs
	begunRuns      uint64 // runs before this number were begun
	queued         uint64 // messages queued
	completed      uint64 // messages answered or given up
	begun          uint64 // messages of which a byte was written, as far as is known
	maybeBegun     uint64 // messages begun, or passed to a write that has not returned
	out            []byte // being written; nil while nothing is
	outLast        uint64 // messages up to the end of out
	off            int    // bytes of out that were written
	edge           int    // the first end of a message in out at or after off
	messagesToEdge uint64 // messages up to edge
	waiting        []byte // to be written after out

	earliest  time.Duration // while answers are processed: their earliest possible arrival; 0: not known
	outcomes  *outcomes     // not delivered yet; nil: none
	answer    []byte        // the last one that was not a plain ack
	answers   int           // events of the message that it answered
	refused   int32         // how many of them it refuses
	text      string        // its reason
	counts    measure.Client
	writtenBy atomic.Uint64 // bytes, all connections
	readBy    atomic.Uint64
}

// bufferBytes bounds each of a lane's two queues of unwritten messages: that of
// the thread, and that behind a full socket. It is larger than a batch group and
// smaller than the processor's cache.
const bufferBytes = 256 << 10

// newTCPLane implements transport.lane.
func newTCPLane(ctx context.Context, c *config, id int, addr string, encoders []*encoder) (sender, error) {
	l := newLane(c, id, addr, encoders)
	k, err := l.dial(ctx)
	if err != nil {
		l.cancel()
		return nil, err
	}
	l.link = k
	return l, nil
}

func newLane(c *config, id int, addr string, encoders []*encoder) *lane {
	l := &lane{id: id, cfg: c, addr: addr, encoders: encoders}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// bufferSize is the size of a buffer in bytes: at least two messages.
func (l *lane) bufferSize() int { return max(bufferBytes, 2*l.size()) }

// size is the largest size of a message, in bytes.
func (l *lane) size() int {
	if l.web != nil {
		return l.web.size()
	}
	return l.cfg.widest
}

// ID implements load.Lane.
func (l *lane) ID() int { return l.id }

// Room implements load.Lane.
func (l *lane) Room(int32, uint64) int { return l.cfg.perMessage() }

// Capabilities implements load.Lane.
func (l *lane) Capabilities() load.LaneCapabilities {
	return load.LaneCapabilities{BatchGroup: l.batchGroup}
}

func (l *lane) batchGroup(_ int32, _ uint64, events int) int {
	if events > l.cfg.perMessage() {
		return 0
	}
	return l.capacity()
}

// capacity is how many messages Fire accepts now. It flushes a full buffer,
// which often makes room.
func (l *lane) capacity() int {
	for {
		l.mu.Lock()
		ok, queued := l.accepts(), len(l.waiting)
		l.mu.Unlock()
		if !ok {
			return 0
		}
		n := (l.bufferSize() - queued - len(l.fill)) / l.size()
		if l.web != nil && l.web.oneInFlight() {
			n = min(n, 1-l.fresh.count())
		}
		if n > 0 || len(l.fill) == 0 {
			return max(n, 0)
		}
		l.Flush()
	}
}

// accepts reports whether the lane accepts messages. Without a connection it
// accepts none, so that events wait in the engine's queue, where they count as
// waiting. After a long time without a connection it accepts them again, and
// they fail with the next attempt to connect, so that a run ends even if the
// server never comes back. They do not fail at once: otherwise a run at full
// speed would fail millions of events per second.
func (l *lane) accepts() bool {
	if l.closed || (l.link == nil || l.link.Dead()) && !l.unreachable(l.sink.Now()) {
		return false
	}
	if l.web != nil && l.web.oneInFlight() && l.queued > l.completed {
		return false
	}
	return len(l.waiting) <= l.bufferSize()-l.size()
}

// unreachable reports whether there has been no connection for longer than
// events are kept. It is false while another client can send them.
func (l *lane) unreachable(now time.Duration) bool {
	if l.connected != nil && l.connected.Load() > 0 {
		return false
	}
	return l.link == nil && l.outage.Longer(now, l.cfg.requestTimeout)
}

// Fire implements load.Lane.
func (l *lane) Fire(batches []load.Batch) (taken int) {
	now := l.wall.Add(l.sink.Now())
	places := l.capacity()
	for i := range batches {
		s := &batches[i]
		n := int(max(s.Batches, 1))
		if n > places {
			// Writes may have made room since the last check.
			if places = l.capacity(); n > places {
				l.requestReady()
				break
			}
		}
		places -= n
		p := l.encoders[s.Stream]
		l.fill = conn.Grow(l.fill, n*l.size())
		at := len(l.fill)
		if l.web != nil {
			l.fill, s.Bytes = l.web.append(l.fill, p, s.First, n, int(s.Events)/n, now)
		} else if n == 1 {
			l.fill, s.Bytes = p.append(l.fill, s.First, int(s.Events), now)
		} else {
			l.fill, s.Bytes = p.batchGroup(l.fill, s.First, n, int(s.Events)/n, now)
		}
		if l.fresh == nil {
			l.fresh = freeMessages.Get().(*messages)
		}
		l.fresh.all = append(l.fresh.all, run{batch: *s, wire: int64(len(l.fill) - at), sent: -1})
		taken++
	}
	return taken
}

// requestReady makes the lane call Ready when it has room again, or at once if
// it has room by now.
func (l *lane) requestReady() {
	l.mu.Lock()
	l.readyDue = true
	l.ready(l.sink.Now())
	l.mu.Unlock()
}

// ready calls Ready if it is due. It waits until half of the buffer is free, so
// that the next write is large.
func (l *lane) ready(now time.Duration) {
	if l.readyDue && l.accepts() && len(l.waiting) <= l.bufferSize()/2 {
		l.readyDue = false
		if l.earliest > 0 {
			now = l.earliest // the delay in reading is the generator's, not the system's
		}
		l.sink.Ready(l.id, now)
	}
}

// Flush implements load.Lane.
func (l *lane) Flush() {
	if l.fresh == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.fresh.all {
		r := l.queue.push()
		*r = l.fresh.all[i]
		l.queued += r.batches()
		r.last = l.queued
		l.counts.Requests += r.batches()
		l.counts.Events += uint64(r.batch.Events)
		l.counts.Bytes += uint64(r.batch.Bytes)
	}
	l.fresh.all = l.fresh.all[:0]
	freeMessages.Put(l.fresh)
	l.fresh = nil
	if len(l.waiting) == 0 {
		conn.Return(l.waiting)
		l.waiting = l.fill
	} else {
		l.waiting = append(conn.Grow(l.waiting, len(l.fill)), l.fill...)
		conn.Return(l.fill)
	}
	l.fill = nil
	if l.link != nil {
		l.link.PumpTogether()
	}
}

// Close implements load.Lane: it gives up unanswered messages.
func (l *lane) Close() error {
	l.Flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	now := l.sink.Now()
	l.begin(l.maybeBegun) // a write in progress may have sent them by now
	l.giveUp(now, load.Canceled, load.TextUnanswered)
	l.drop(now, load.Canceled, load.TextUnwritten)
	l.outage.Over(now, l.cfg.happened)
	l.deliver()
	if l.link != nil {
		l.link.Kill(conn.ErrClosed)
	}
	return nil
}

// start implements sender.
func (l *lane) start(sink load.Sink) {
	l.sink, l.wall = sink, time.Now().Add(-sink.Now())
	l.tasks.Add(1)
	l.keepConnected() // the session has connected
}

// disconnect implements sender.
func (l *lane) disconnect() error {
	l.cancel()
	l.mu.Lock()
	if l.link != nil {
		l.link.Kill(conn.ErrClosed)
	}
	l.mu.Unlock()
	l.tasks.Wait()
	return nil
}

// wire implements sender.
func (l *lane) wire() (written, read uint64) { return l.writtenBy.Load(), l.readBy.Load() }

// warnings implements sender.
func (l *lane) warnings() []string { return nil }

// complete adds an outcome for the first n messages of the oldest run.
func (l *lane) complete(n uint64, done time.Duration) *load.Outcome {
	r := l.queue.at(l.queue.head)
	part := r
	if n < r.batches() {
		p := r.cut(n)
		part = &p
	} else {
		l.queue.head++
		l.begunRuns = max(l.begunRuns, l.queue.head)
	}
	l.completed += n
	place := int64(-1)
	if l.cfg.verify {
		place = int64(part.batch.First) // a verified event's service contains its index
	}
	if l.outcomes == nil {
		l.outcomes = freeOutcomes.Get().(*outcomes)
	}
	l.outcomes.all = append(l.outcomes.all, load.Outcome{
		Batch: part.batch, Lane: int32(l.id), Sent: part.sent, Done: max(done, part.sent), Earliest: l.earliest, Wire: part.wire, Place: place,
	})
	return &l.outcomes.all[len(l.outcomes.all)-1]
}

// deliver passes the outcomes to the sink.
func (l *lane) deliver() {
	if o := l.outcomes; o != nil {
		l.sink.Complete(o.all)
		clear(o.all)
		o.all = o.all[:0]
		l.outcomes = nil
		freeOutcomes.Put(o)
	}
	l.queue.trim()
}

// giveUp completes the messages that were begun, as unknown.
func (l *lane) giveUp(now time.Duration, class load.Class, text string) {
	for !l.queue.empty() {
		r := l.queue.at(l.queue.head)
		if r.first() >= l.begun {
			break
		}
		o := l.complete(r.batches(), now)
		o.Unknown, o.Class, o.Text = o.Events, class, text
	}
}

// drop completes the messages that were not begun, as failed. No others may be
// left.
func (l *lane) drop(now time.Duration, class load.Class, text string) {
	for !l.queue.empty() {
		o := l.complete(l.queue.at(l.queue.head).batches(), now)
		o.Failed, o.Class, o.Text, o.Wire = o.Events, class, text, 0
	}
	l.begun, l.maybeBegun = l.queued, l.queued
	if l.link == nil || !l.link.Writing() { // otherwise a writer uses out, and no write follows
		l.out, l.off, l.edge = l.out[:0], 0, 0
		l.outLast, l.messagesToEdge = l.queued, l.queued
	}
	l.waiting = l.waiting[:0]
}

// fail completes all messages that wait for a connection, as failed.
func (l *lane) fail(now time.Duration) {
	l.drop(now, load.Refused, errorText(l.outage.Err))
	l.deliver()
}
