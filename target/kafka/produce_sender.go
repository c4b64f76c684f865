package kafka

import (
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/wire/kafka"
	"carronade/load"
)

// A slot is a batch on its way: from Fire until it is completed. It stays with
// the lane on which it was fired, whatever connection its attempts go over.
type slot struct {
	batch load.Batch
	home  *lane
	part  int32
	live  int // place in sender.live; -1: completed

	recs   []byte    // the records as they travel
	sum    kafka.Sum // of recs
	count  int32
	raw    int32   // bytes of the records before compression
	own    *buffer // own memory, given back in the end
	millis int64   // timestamp; 0 until the first attempt
	crc    uint32  // of the last attempt

	sent     time.Duration // first attempt's first byte; -1: none
	deadline time.Duration // no attempt after it
	after    time.Duration // no attempt before it
	attempts int32
	wire     int64
	flying   bool // an attempt is on the wire, or queued for it
	maybe    bool // an attempt was written and its fate is not known
	class    load.Class
	text     string // about the last attempt

	// Idempotent producing only.
	pid   int64
	epoch int16
	seq   int32
	first bool // sent when nothing of its partition was unanswered
}

// A sender is one client: an identity of its own, and a lane to every broker.
// Its lock guards everything that its sending thread, the readers and flushers
// of its connections and the watch share; it is never held over a system call.
// The sink is called with it held, which keeps calls of a lane apart.
type sender struct {
	p      *producer
	id     int
	routes []atomic.Pointer[lane] // by partition

	mu       sync.Mutex
	started  bool
	lanes    []*lane
	byBroker map[int32]*lane
	shares   []share // by partition
	live     []*slot // not completed
	later    []*slot // waiting for a leader, a connection or a backoff

	recovering []int32 // partitions that are, and some that were
	again      []*lane // scratch: those to which something is sent again

	orphans int   // partitions without a leader
	calm    bool  // the watch checks less often
	nowhere *lane // of those that had none for too long; nil: none
	marks   uint64
	now     time.Duration // of the last look at the clock with the lock held
	since   time.Duration // while answers are taken: the earliest that they can have arrived; 0: not known

	freeSlots    []*slot
	freeRequests []*request
	freeBuffers  []*buffer
	outcomes     []load.Outcome // completed, not yet handed over
	sending      []*slot        // scratch
	dirty        []*link        // with requests queued, to be written
	answers      []kafka.ProduceAnswer

	pid      int64 // -1: not idempotent
	epoch    int16
	fetching bool // a new producer id

	encoder encoder // of the sending thread
}

// A share is one sender's part of a partition. Of a sender that is not
// idempotent only mark, after, orphan and since are used.
type share struct {
	mark uint64 // of the request being put together that has a batch for it

	pid        int64
	epoch      int16
	next       int32   // sequence of the next record
	queue      []*slot // unanswered, in order
	wired      int     // how many of them, from the first on, are on the wire
	recovering bool    // waits until none is, to send all again in order
	listed     bool    // stands in sender.recovering
	bump       bool    // there is a gap: begin a new epoch
	after      time.Duration
	orphan     bool          // it has no leader
	since      time.Duration // for so long
}

func newSender(p *producer, id, partitions int) *sender {
	s := &sender{
		p: p, id: id, pid: -1, epoch: -1,
		routes:   make([]atomic.Pointer[lane], partitions),
		shares:   make([]share, partitions),
		byBroker: map[int32]*lane{},
	}
	s.encoder.init(p)
	return s
}

// adopt gives all partitions the producer id just got.
func (s *sender) adopt() {
	for i := range s.shares {
		s.shares[i].pid, s.shares[i].epoch = s.pid, s.epoch
	}
}

// update takes a new view.
func (s *sender) update(v *view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.p.sink.Now()
	s.learn(v)
	s.dispatch()
	s.finish()
}

// learn routes partitions to the lanes of their leaders, making lanes for
// brokers that have none.
func (s *sender) learn(v *view) {
	found := false
	for part := range min(len(s.routes), len(v.leaders)) {
		id := v.leaders[part]
		sh := &s.shares[part]
		if id == noLeader {
			if !sh.orphan {
				sh.orphan, sh.since = true, s.now
				s.orphans++
				s.left(s.routes[part].Swap(nil))
			}
			continue
		}
		if sh.orphan {
			sh.orphan = false
			s.orphans--
		}
		l := s.byBroker[id]
		if l == nil {
			l = &lane{s: s, id: int(s.p.lanes.Add(1) - 1), broker: id}
			s.byBroker[id] = l
			s.lanes = append(s.lanes, l)
			if s.started {
				s.p.tasks.Go(l.keep)
			}
		}
		if old := s.routes[part].Swap(l); old != l {
			s.left(old)
			found = found || old == nil
			sh.after = 0 // a new leader is worth trying at once
		}
	}
	for id, l := range s.byBroker {
		if addr := v.brokers[id]; addr != "" {
			l.addr = addr
		}
		if k := l.link; k != nil && k.format.TopicID != v.topicID {
			k.kill(errAnew) // requests name the topic by its id
		}
	}
	if found && s.started {
		s.p.sink.Ready(-1, s.now)
	}
}

// left says that a partition is no longer served by a lane. What the engine
// has queued at a lane that is full, perhaps for ever, has to look again.
func (s *sender) left(l *lane) {
	if l != nil && l.wanting && !l.closed {
		l.wanting = false
		s.p.sink.Ready(l.id, s.now)
	}
}

func (s *sender) newSlot() *slot {
	if n := len(s.freeSlots); n > 0 {
		sl := s.freeSlots[n-1]
		s.freeSlots = s.freeSlots[:n-1]
		return sl
	}
	return new(slot)
}

// release takes back a completed slot. Nothing refers to it any more.
func (s *sender) release(sl *slot) {
	if sl.own != nil {
		s.freeBuffers = append(s.freeBuffers, sl.own)
	}
	*sl = slot{}
	s.freeSlots = append(s.freeSlots, sl)
}

// A buffer is memory for the records of one batch.
type buffer struct {
	b    []byte
	copy *template // the template whose records it holds, but for stamps; nil: none
}

// newBuffer is a free buffer, if there is one a copy of the template.
func (s *sender) newBuffer(d *template) *buffer {
	last := len(s.freeBuffers) - 1
	if last < 0 {
		return new(buffer)
	}
	for i := last; i >= 0; i-- {
		if s.freeBuffers[i].copy == d {
			s.freeBuffers[i], s.freeBuffers[last] = s.freeBuffers[last], s.freeBuffers[i]
			break
		}
	}
	b := s.freeBuffers[last]
	s.freeBuffers = s.freeBuffers[:last]
	return b
}

func (s *sender) newRequest() *request {
	if n := len(s.freeRequests); n > 0 {
		r := s.freeRequests[n-1]
		s.freeRequests = s.freeRequests[:n-1]
		return r
	}
	return new(request)
}

// complete says what became of a slot. Its memory is not free yet: bytes of it
// may still be in the hands of a writer.
func (s *sender) complete(sl *slot, done time.Duration, o load.Outcome) {
	o.Batch = sl.batch
	o.Lane = int32(sl.home.id)
	o.Sent, o.Done, o.Earliest = sl.sent, done, s.since
	o.Retries = max(0, sl.attempts-1)
	o.Wire = sl.wire
	if !s.p.repacked {
		o.Sum = sl.crc
	}
	if o.Acked == 0 || o.Place < 0 {
		o.Place = -1
	}
	s.outcomes = append(s.outcomes, o)
	last := len(s.live) - 1
	s.live[sl.live] = s.live[last]
	s.live[sl.live].live = sl.live
	s.live[last] = nil
	s.live = s.live[:last]
	sl.live = -1
}

func (s *sender) acked(sl *slot, done time.Duration, place int64) {
	s.complete(sl, done, load.Outcome{Acked: sl.batch.Events, Place: place})
}

// failed is for what the broker certainly did not append.
func (s *sender) failed(sl *slot, done time.Duration, class load.Class, text string) {
	s.complete(sl, done, load.Outcome{Failed: sl.batch.Events, Class: class, Text: text, Place: -1})
}

func (s *sender) unknown(sl *slot, done time.Duration, class load.Class, text string) {
	s.complete(sl, done, load.Outcome{Unknown: sl.batch.Events, Class: class, Text: text, Place: -1})
}

// giveUp completes a slot whose attempts are over.
func (s *sender) giveUp(sl *slot, done time.Duration, class load.Class, text string) {
	if sl.maybe {
		s.unknown(sl, done, class, text)
		return
	}
	s.failed(sl, done, class, text)
}

// deliver hands over what was completed.
func (s *sender) deliver() {
	if len(s.outcomes) == 0 {
		return
	}
	s.p.sink.Complete(s.outcomes)
	clear(s.outcomes) // texts
	s.outcomes = s.outcomes[:0]
}

// finish ends what was done with the lock held: outcomes are handed over, and
// queued requests written. Writing gives up the lock meanwhile, so that it is
// done when nothing is half done.
func (s *sender) finish() {
	s.deliver()
	for len(s.dirty) > 0 {
		k := s.dirty[len(s.dirty)-1]
		s.dirty = s.dirty[:len(s.dirty)-1]
		k.dirty = false
		k.pump()
	}
	s.deliver()
	if s.calm && s.pauses() {
		s.calm = false
		select {
		case s.p.hurry <- struct{}{}:
		default:
		}
	}
}
