package kafka

import (
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/kafka/wire"
	"carronade/load"
)

// A slot is a batch from Fire until it is completed. It belongs to the lane that
// took it, whichever connection its attempts use.
type slot struct {
	batch     load.Batch
	lane      *lane
	log       int32
	liveIndex int // place in sender.live; -1: completed

	recs   []byte   // the records as they are sent
	sum    wire.Sum // of recs
	count  int32
	raw    int32   // bytes of the records before compression
	buffer *buffer // its own memory, released when it is completed
	millis int64   // timestamp; 0 until the first attempt
	crc    uint32  // of the last attempt

	sent          time.Duration // when the first byte of the first attempt was written; -1: never
	deadline      time.Duration // no attempt after it
	notBefore     time.Duration // no attempt before it
	attempts      int32
	wire          int64
	inFlight      bool // an attempt is on the wire, or queued for it
	maybeAppended bool // an attempt was written and its result is not known
	class         load.Class
	text          string // why the last attempt failed

	// Idempotent producing only.
	pid       int64
	epoch     int16
	seq       int32
	sentAlone bool // sent while no other batch of its partition was unanswered
}

// A sender is one client: it has its own producer id and a lane to every broker.
// Its lock guards everything that its sending thread, the readers and flushers
// of its connections and watch share; it is never held during a system call. The
// sink is called with it held, so that calls for one lane do not overlap.
type sender struct {
	p      *producer
	id     int
	first  int32                  // log: it sends to some or all from this one on
	routes []atomic.Pointer[lane] // by log, from first on

	mu         sync.Mutex
	started    bool
	lanes      []*lane
	byBroker   map[int32]*lane
	partitions []partitionState // by log, from first on
	live       []*slot          // not completed
	later      []*slot          // waiting for a leader, a connection or a backoff

	recovering  []int32 // partitions that are recovering, and some that were
	resendLanes []*lane // scratch: lanes on which batches are sent again

	leaderless      int           // partitions without a leader
	calm            bool          // watch checks less often
	leaderlessLane  *lane         // of partitions without a leader for too long; nil: none
	requestCount    uint64        // requests made; numbers them
	now             time.Duration // when the clock was last read with the lock held
	earliestArrival time.Duration // while answers are processed: the earliest time that they can have arrived; 0: not known

	freeSlots    []*slot
	freeRequests []*request
	freeBuffers  []*buffer
	outcomes     []load.Outcome // completed, not yet handed over
	sending      []*slot        // scratch
	dirty        []*link        // with requests queued, to be written
	answers      []wire.ProduceAnswer

	pid          int64 // -1: not idempotent
	epoch        int16
	requestingID bool // a new producer id is requested

	encoder encoder // of the sending thread
}

// A partitionState is what one sender knows of a partition. If the sender is not
// idempotent, only lastRequest, notBefore, leaderless and leaderlessSince are used.
type partitionState struct {
	lastRequest uint64 // number of the last request with a batch for it

	pid             int64
	epoch           int16
	next            int32         // sequence of the next record
	queue           []*slot       // unanswered, in order
	inFlight        int           // how many of them, from the first on, are in flight
	recovering      bool          // waits until none is in flight, to send all again in order
	listed          bool          // is in sender.recovering
	needsEpoch      bool          // there is a gap: begin a new epoch
	notBefore       time.Duration // no attempt before it
	leaderless      bool          // it has no leader
	leaderlessSince time.Duration // when it lost its leader
}

// newSender makes client id, which sends to logs from one up to another, to excluded.
func newSender(p *producer, id, from, to int) *sender {
	partitions := to - from
	s := &sender{
		p: p, id: id, first: int32(from), pid: -1, epoch: -1, //nolint:gosec // few logs
		routes:     make([]atomic.Pointer[lane], partitions),
		partitions: make([]partitionState, partitions),
		byBroker:   map[int32]*lane{},
	}
	s.encoder.init(p)
	return s
}

func (s *sender) route(log int32) *atomic.Pointer[lane] { return &s.routes[log-s.first] }

func (s *sender) partition(log int32) *partitionState { return &s.partitions[log-s.first] }

// assignProducerID assigns the sender's new producer id to all partitions.
func (s *sender) assignProducerID() {
	for i := range s.partitions {
		s.partitions[i].pid, s.partitions[i].epoch = s.pid, s.epoch
	}
}

// update applies a new view.
func (s *sender) update(v *view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.p.sink.Now()
	s.learn(v)
	s.dispatch()
	s.finish()
}

// learn routes partitions to the lanes of their leaders. It makes a lane for each
// broker that has none.
func (s *sender) learn(v *view) {
	found, moved := false, false
	for i, id := range v.leaders[s.first:][:len(s.routes)] {
		ps := &s.partitions[i]
		if id == noLeader {
			if !ps.leaderless {
				ps.leaderless, ps.leaderlessSince = true, s.now
				s.leaderless++
				moved = true
				s.partitionLeft(s.routes[i].Swap(nil))
			}
			continue
		}
		if ps.leaderless {
			ps.leaderless = false
			s.leaderless--
		}
		l := s.byBroker[id]
		if l == nil {
			l = &lane{s: s, id: int(s.p.laneCount.Add(1) - 1), broker: id}
			s.byBroker[id] = l
			s.lanes = append(s.lanes, l)
			if s.started {
				s.p.tasks.Go(l.keepConnected)
			}
		}
		if old := s.routes[i].Swap(l); old != l {
			s.partitionLeft(old)
			found = found || old == nil
			moved = moved || old != nil
			ps.notBefore = 0 // a new leader is tried at once
		}
	}
	for id, l := range s.byBroker {
		if addr := v.brokers[id]; addr != "" {
			l.addr = addr
		}
		if k := l.link; k != nil && !sameTopics(k.topics, v.topics) {
			k.Kill(errTopicRecreated) // requests name topics by their ids
		}
	}
	if moved {
		s.p.cfg.Happened("leader changed", time.Now(), 0)
	}
	if found && s.started {
		s.p.sink.Ready(-1, s.now)
	}
}

// partitionLeft says that a lane no longer serves a partition. The engine must
// route again what it queued for a lane that is full, which may stay so for ever.
func (s *sender) partitionLeft(l *lane) {
	if l != nil && l.owesReady && !l.closed {
		l.owesReady = false
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

// release returns a completed slot to the free list. Nothing may refer to it.
func (s *sender) release(sl *slot) {
	if sl.buffer != nil {
		s.freeBuffers = append(s.freeBuffers, sl.buffer)
	}
	*sl = slot{}
	s.freeSlots = append(s.freeSlots, sl)
}

// A buffer is memory for the records of one batch.
type buffer struct {
	b    []byte
	copy *template // the template whose records it contains, except for stamps; nil: none
}

// newBuffer returns a free buffer: if possible, one that is a copy of the template.
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

// complete completes a slot with an outcome. The slot's memory is not free yet: a
// writer may still use it.
func (s *sender) complete(sl *slot, done time.Duration, o load.Outcome) {
	o.Batch = sl.batch
	o.Lane = int32(sl.lane.id)
	o.Sent, o.Done, o.Earliest = sl.sent, done, s.earliestArrival
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
	s.live[sl.liveIndex] = s.live[last]
	s.live[sl.liveIndex].liveIndex = sl.liveIndex
	s.live[last] = nil
	s.live = s.live[:last]
	sl.liveIndex = -1
}

func (s *sender) acked(sl *slot, done time.Duration, place int64) {
	s.p.list.add(sl.log, place, int64(sl.batch.Events))
	s.complete(sl, done, load.Outcome{Acked: sl.batch.Events, Place: place})
}

// failed completes a slot that the broker certainly did not append.
func (s *sender) failed(sl *slot, done time.Duration, class load.Class, text string) {
	s.complete(sl, done, load.Outcome{Failed: sl.batch.Events, Class: class, Text: text, Place: -1})
}

func (s *sender) unknown(sl *slot, done time.Duration, class load.Class, text string) {
	s.complete(sl, done, load.Outcome{Unknown: sl.batch.Events, Class: class, Text: text, Place: -1})
}

// giveUp completes a slot that is not tried again.
func (s *sender) giveUp(sl *slot, done time.Duration, class load.Class, text string) {
	if sl.maybeAppended {
		s.unknown(sl, done, class, text)
		return
	}
	s.failed(sl, done, class, text)
}

// deliver passes the outcomes to the sink.
func (s *sender) deliver() {
	if len(s.outcomes) == 0 {
		return
	}
	s.p.sink.Complete(s.outcomes)
	clear(s.outcomes) // texts
	s.outcomes = s.outcomes[:0]
}

// finish delivers the outcomes and writes the queued requests. Callers do this
// last, with the lock held: the lock is released during a write, so the sender's
// state must be consistent.
func (s *sender) finish() {
	s.deliver()
	for len(s.dirty) > 0 {
		k := s.dirty[len(s.dirty)-1]
		s.dirty = s.dirty[:len(s.dirty)-1]
		k.dirty = false
		k.Pump()
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
