package riemann

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/socket"
	"carronade/load"
	"carronade/measure"
)

// A lane is a client with one connection, over TCP or TLS. What is fired is
// pressed into a buffer of the sending thread; Flush hands it on, and writes it
// from that thread where that need not block. What the socket does not take is
// left to the connection's flusher. The reader counts the answers, which come
// in the order of the messages.
//
// What belongs to the sending thread is touched by no other. All the rest is
// guarded by mu, which is given up during system calls; writing says that
// somebody is in one.
type lane struct {
	id   int
	cfg  *config
	addr string
	sink load.Sink
	wall time.Time // of the run's start

	poller    func(lane int) *socket.Poller // where its thread waits, nil where it waits elsewhere; nil: nowhere else
	connected *atomic.Int32                 // clients that have a connection; nil: no other sends for this one

	web framing // nil: frames of protocol buffers

	// The sending thread's.
	presses []*encoder // by stream
	widest  int        // bytes that no message of theirs exceeds
	fill    []byte     // messages pressed and not handed on
	fresh   []run      // of them

	ctx    context.Context // of its goroutines
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	cond    *sync.Cond // handed, writing or dead have changed
	link    *link      // nil while there is none
	closed  bool
	wanting bool // said that it is full, and owes a Ready
	downAt  time.Duration
	downErr error

	// The stream, over all connections: messages are numbered as they are
	// handed on. What waits is in two buffers, so that one can be written while
	// the other fills; both begin with a whole message.
	queue     runs
	stamped   uint64 // runs before it were begun
	passed    uint64 // messages handed on
	completed uint64 // messages answered or given up
	begun     uint64 // messages of which a byte was written, as far as is known
	upto      uint64 // messages begun, or in a writer's hands
	out       []byte // being written
	outLast   uint64 // messages up to its end
	off       int    // bytes of it that were written
	edge      int    // the first end of a message in it that is not before off
	edged     uint64 // messages up to there
	waiting   []byte // to be written after it
	writing   bool
	handed    bool // the flusher is to write, or does
	adopting  bool // somebody waits until nobody writes
	waited    bool // what is being written waited behind a full socket

	since     time.Duration // while answers are taken: the earliest that they can have arrived; 0: not known
	outcomes  []load.Outcome
	answer    []byte // the last one that was no plain ack
	answers   int    // events of the message that it answered
	refused   int32  // how many of them it refuses
	text      string // its words
	counts    measure.Client
	writtenBy atomic.Uint64 // bytes, all connections
	readBy    atomic.Uint64
}

// bufferBytes is how much may wait to be written, twice: for the thread, and
// behind a full socket. It is more than a batch group is and less than the
// processor's cache.
const bufferBytes = 256 << 10

// newTCPLane is a transport's lane: it connects.
func newTCPLane(ctx context.Context, c *config, id int, addr string, presses []*encoder) (sender, error) {
	l := newLane(c, id, addr, presses)
	k, err := l.dial(ctx)
	if err != nil {
		l.cancel()
		return nil, err
	}
	l.link = k
	return l, nil
}

func newLane(c *config, id int, addr string, presses []*encoder) *lane {
	l := &lane{id: id, cfg: c, addr: addr, presses: presses}
	for _, p := range presses {
		l.widest = max(l.widest, p.size())
	}
	l.cond = sync.NewCond(&l.mu)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	n := l.most()
	l.fill, l.out, l.waiting = make([]byte, 0, n), make([]byte, 0, n), make([]byte, 0, n)
	return l
}

// most is the size of a buffer: two messages at least.
func (l *lane) most() int { return max(bufferBytes, 2*l.size()) }

// size is the bytes that no message exceeds.
func (l *lane) size() int {
	if l.web != nil {
		return l.web.size()
	}
	return l.widest
}

// ID implements load.Lane.
func (l *lane) ID() int { return l.id }

// Room implements load.Lane.
func (l *lane) Room(int32, uint64) int { return l.cfg.perMessage() }

// BatchGroup implements load.BatchGrouper.
func (l *lane) BatchGroup(_ int32, _ uint64, events int) int {
	if events > l.cfg.perMessage() {
		return 0
	}
	return l.places()
}

// places is how many messages may be fired now. Where the buffer is full it is
// handed on, which often makes room.
func (l *lane) places() int {
	for {
		l.mu.Lock()
		ok, queued := l.accepts(l.sink.Now()), len(l.waiting)
		l.mu.Unlock()
		if !ok {
			return 0
		}
		n := (l.most() - queued - len(l.fill)) / l.size()
		if l.web != nil && l.web.alone() {
			n = min(n, 1-len(l.fresh))
		}
		if n > 0 || len(l.fill) == 0 {
			return max(n, 0)
		}
		l.Flush()
	}
}

// accepts reports whether messages are taken. Without a connection none are,
// so that events wait where they are counted as waiting; after a long time
// without one they are taken, and fail with the next attempt to connect, so
// that a run against a server that never comes back ends. They do not fail at
// once: a run at full speed would do nothing else, millions of times a second.
func (l *lane) accepts(now time.Duration) bool {
	if l.closed || (l.link == nil || l.link.dead) && !l.gone(now) {
		return false
	}
	if l.web != nil && l.web.alone() && l.passed > l.completed {
		return false
	}
	return len(l.waiting) <= l.most()-l.size()
}

// gone reports whether there has been no connection for so long that events
// are not kept any longer. Where another client can send them, they always are.
func (l *lane) gone(now time.Duration) bool {
	if l.connected != nil && l.connected.Load() > 0 {
		return false
	}
	return l.link == nil && l.downErr != nil && now-l.downAt > l.cfg.requestTimeout
}

// Fire implements load.Lane.
func (l *lane) Fire(batches []load.Batch) (taken int) {
	now := l.wall.Add(l.sink.Now())
	places := l.places()
	for i := range batches {
		s := &batches[i]
		n := int(max(s.Batches, 1))
		if n > places {
			// It takes what fits, and a look at what has been written meanwhile.
			if places = l.places(); n > places {
				l.want()
				break
			}
		}
		places -= n
		p := l.presses[s.Stream]
		at := len(l.fill)
		if l.web != nil {
			l.fill, s.Bytes = l.web.append(l.fill, p, s.First, n, int(s.Events)/n, now)
		} else if n == 1 {
			l.fill, s.Bytes = p.append(l.fill, s.First, int(s.Events), now)
		} else {
			l.fill, s.Bytes = p.batchGroup(l.fill, s.First, n, int(s.Events)/n, now)
		}
		l.fresh = append(l.fresh, run{batch: *s, wire: int64(len(l.fill) - at), sent: -1})
		taken++
	}
	return taken
}

// want notes that the engine is told when there is room again, or tells it at
// once when there is room by now.
func (l *lane) want() {
	l.mu.Lock()
	l.wanting = true
	l.ready(l.sink.Now())
	l.mu.Unlock()
}

// ready keeps the promise of a lane that was full. It waits for half of the
// buffer, so that what is fired then is worth a write.
func (l *lane) ready(now time.Duration) {
	if l.wanting && l.accepts(now) && len(l.waiting) <= l.most()/2 {
		l.wanting = false
		if l.since > 0 {
			now = l.since // that nobody read is not the system's doing
		}
		l.sink.Ready(l.id, now)
	}
}

// Flush implements load.Lane.
func (l *lane) Flush() {
	if len(l.fresh) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.fresh {
		r := l.queue.push()
		*r = l.fresh[i]
		l.passed += r.batches()
		r.last = l.passed
		l.counts.Requests += r.batches()
		l.counts.Events += uint64(r.batch.Events)
		l.counts.Bytes += uint64(r.batch.Bytes)
	}
	l.fresh = l.fresh[:0]
	if len(l.waiting) == 0 {
		l.waiting, l.fill = l.fill, l.waiting
	} else {
		l.waiting = append(l.waiting, l.fill...)
		l.fill = l.fill[:0]
	}
	l.pump()
}

// Close implements load.Lane: what is unanswered is given up.
func (l *lane) Close() error {
	l.Flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	now := l.sink.Now()
	l.begin(l.upto) // what is in a writer's hands may be written by now
	l.giveUp(now, load.Canceled, load.TextUnanswered)
	l.drop(now, load.Canceled, load.TextUnwritten)
	l.deliver()
	if l.link != nil {
		l.link.kill(errClosed)
	}
	return nil
}

// start implements sender.
func (l *lane) start(sink load.Sink) {
	l.sink, l.wall = sink, time.Now().Add(-sink.Now())
	l.tasks.Go(l.keep)
}

// hangUp implements sender.
func (l *lane) hangUp() error {
	l.cancel()
	l.mu.Lock()
	if l.link != nil {
		l.link.kill(errClosed)
	}
	l.mu.Unlock()
	l.tasks.Wait()
	return nil
}

// wire implements sender.
func (l *lane) wire() (written, read uint64) { return l.writtenBy.Load(), l.readBy.Load() }

// warnings implements sender.
func (l *lane) warnings() []string { return nil }

// complete notes the fate of the first n messages of the oldest run.
func (l *lane) complete(n uint64, done time.Duration) *load.Outcome {
	r := l.queue.at(l.queue.head)
	part := r
	if n < r.batches() {
		p := r.take(n)
		part = &p
	} else {
		l.queue.head++
		l.stamped = max(l.stamped, l.queue.head)
	}
	l.completed += n
	place := int64(-1)
	if l.cfg.verify {
		place = int64(part.batch.First) // its unique name says which it is
	}
	l.outcomes = append(l.outcomes, load.Outcome{
		Batch: part.batch, Lane: int32(l.id), Sent: part.sent, Done: max(done, part.sent), Earliest: l.since, Wire: part.wire, Place: place,
	})
	return &l.outcomes[len(l.outcomes)-1]
}

// deliver hands the outcomes over.
func (l *lane) deliver() {
	if len(l.outcomes) > 0 {
		l.sink.Complete(l.outcomes)
		clear(l.outcomes)
		l.outcomes = l.outcomes[:0]
	}
}

// giveUp completes the messages that were begun as unknown.
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

// drop completes the messages that were not begun, which must be all that are
// left, as failed.
func (l *lane) drop(now time.Duration, class load.Class, text string) {
	for !l.queue.empty() {
		o := l.complete(l.queue.at(l.queue.head).batches(), now)
		o.Failed, o.Class, o.Text, o.Wire = o.Events, class, text, 0
	}
	l.begun, l.upto = l.passed, l.passed
	if !l.writing { // else it is a writer's, and nobody writes after it
		l.out, l.off, l.edge = l.out[:0], 0, 0
		l.outLast, l.edged = l.passed, l.passed
	}
	l.waiting = l.waiting[:0]
}

// fail completes all that waits for a connection which does not come.
func (l *lane) fail(now time.Duration) {
	l.drop(now, load.Refused, wordsOf(l.downErr))
	l.deliver()
}
