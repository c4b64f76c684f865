package kafka

import (
	"errors"
	"net"
	"sync"
	"time"

	"carronade/internal/socket"
	"carronade/internal/wire/kafka"
	"carronade/load"
)

// A link is one connection to a broker: a queue of requests, of which the
// first have been written and wait for their answers, which come in the same
// order. Whoever finds the link idle writes; on Linux and without TLS that is
// the sending thread itself, by a writev that does not block. What the socket
// does not take is left to the link's flusher, which waits for it.
//
// Everything but the reader's buffer is guarded by the sender's lock, which is
// given up during system calls; writing says that somebody is in one.
type link struct {
	l      *lane
	nc     net.Conn
	out    *socket.Writer // where it is not direct, the flusher writes everything, blocking
	format kafka.ProduceFormat
	cond   *sync.Cond // on the sender's lock: handed, dead and writing have changed

	// The queue: a ring, requests head..tail-1 by running number.
	ring   []*request
	head   uint64 // the oldest unanswered
	next   uint64 // the first not written whole
	tail   uint64
	offset int           // bytes written of request next
	upto   uint64        // requests below it are written, or in a writer's hands
	unsent int           // bytes queued and not written
	moved  time.Duration // when bytes of the queue were last written or answered, or it was last empty

	writing  bool // somebody owns the writing
	adopting bool // somebody waits until nobody writes
	handed   bool // and it is the flusher
	dead     bool
	cause    error
	dirty    bool // in sender.dirty

	term   term          // of the login
	paused bool          // logging in again: no produce request may be queued
	over   chan struct{} // closed when it is dead

	waited      bool   // what is being written waited behind a full socket
	slow        bool   // the last blocking write took long
	marks       []mark // what is being written, by request
	limbo       []*request
	correlation int32
	hints       []hint // where partitions have gone
}

// A mark is what a vector holds of one request.
type mark struct {
	bytes int
	rest  bool // all that was left of it
}

// A hint is a broker's word about a partition's new leader.
type hint struct{ partition, leader, epoch int32 }

// A request is a produce request: glue (heads, tails, batch headers) and the
// records of its slots between.
type request struct {
	correlation int32
	slots       []*slot
	glue        []byte
	segs        [][]byte
	size        int
	sent        time.Duration // its first byte was written; -1
	reply       chan []byte   // of a request that is not for producing; else nil
}

var (
	errClosed  = errors.New("closed")
	errTimeout = errors.New(load.TextNoAnswer)
	errEarly   = &protocolError{errors.New("an answer to a partly written request")}
	errAnew    = errors.New("the topic was deleted and created again")
)

func newLink(l *lane, nc net.Conn, f kafka.ProduceFormat) *link {
	k := &link{l: l, nc: nc, format: f, ring: make([]*request, 16), cond: sync.NewCond(&l.s.mu), over: make(chan struct{})}
	k.out = socket.NewWriter(nc, func() time.Duration { return l.s.p.sink.Now() }) // there is no sink before the run
	return k
}

// adopt leaves the reading to a poller, where there is one and the connection is
// plain.
func (k *link) adopt(p *socket.Poller) {
	if p == nil {
		return
	}
	k.l.s.mu.Lock()
	defer k.l.s.mu.Unlock()
	k.adopting = true
	for k.writing && !k.handed { // what was fired at once, or a login that is renewed
		k.cond.Wait()
	}
	k.adopting = false
	if c, ok := p.Take(k.nc); ok {
		k.nc = c
		k.out = socket.NewWriter(c, k.l.s.p.sink.Now)
	}
}

// push queues a request with the slots given, of different partitions each.
func (k *link) push(r *request, slots []*slot) {
	r.slots = append(r.slots[:0], slots...)
	r.sent = -1
	k.correlation++
	r.correlation = k.correlation
	k.assemble(r)
	k.enqueue(r)
	m := &k.l.metrics
	m.Requests++
	m.Batches += uint64(len(slots))
	m.Bytes += uint64(r.size)
	for _, sl := range slots {
		m.Records += uint64(sl.count)
		m.RawBytes += uint64(sl.raw)
		m.SentBytes += uint64(len(sl.recs))
		sl.wire += int64(kafka.HeaderSize + len(sl.recs))
		sl.flying = true
	}
	slots[0].wire += int64(r.size) // the request's own bytes go to its first batch
	for _, sl := range slots {
		slots[0].wire -= int64(kafka.HeaderSize + len(sl.recs))
	}
}

// enqueue puts a request at the end of the queue.
func (k *link) enqueue(r *request) {
	if k.tail-k.head == uint64(len(k.ring)) {
		bigger := make([]*request, 2*len(k.ring))
		for n := k.head; n < k.tail; n++ {
			bigger[n%uint64(len(bigger))] = k.at(n)
		}
		k.ring = bigger
	}
	if k.head == k.tail {
		k.moved = k.l.s.now
	}
	k.ring[k.tail%uint64(len(k.ring))] = r
	k.tail++
	k.unsent += r.size
}

func (k *link) at(n uint64) *request { return k.ring[n%uint64(len(k.ring))] }

// smallRecords are copied between the glue: a piece of its own costs the
// kernel more than copying so few bytes.
const smallRecords = 2 << 10

// assemble makes the bytes of a request.
func (k *link) assemble(r *request) {
	s := k.l.s
	need := k.format.MaxHead() + len(r.slots)*(kafka.MaxPartition+kafka.HeaderSize)
	for _, sl := range r.slots {
		if len(sl.recs) <= smallRecords {
			need += len(sl.recs)
		}
	}
	if cap(r.glue) < need { // pieces of it are kept: it must not move
		r.glue = make([]byte, 0, need)
	}
	g := k.format.AppendHead(r.glue[:0], r.correlation, len(r.slots))
	r.segs = r.segs[:0]
	r.size = 0
	from := 0
	for _, sl := range r.slots {
		size := kafka.HeaderSize + len(sl.recs)
		g = k.format.AppendPartition(g, sl.part, size)
		at := len(g)
		g = g[:at+kafka.HeaderSize]
		if sl.millis == 0 {
			sl.millis = s.p.wall.Add(s.now).UnixMilli()
		}
		h := kafka.Header{
			Length: int32(size - 12), LeaderEpoch: -1, Attributes: int16(s.p.codec),
			LastOffsetDelta: sl.count - 1, BaseTimestamp: sl.millis, MaxTimestamp: sl.millis,
			ProducerID: sl.pid, ProducerEpoch: sl.epoch, BaseSequence: sl.seq, NumRecords: sl.count,
		}
		h.Put(g[at:])
		sl.crc = kafka.Seal(g[at:], sl.sum)
		if len(sl.recs) <= smallRecords {
			g = append(g, sl.recs...)
		} else {
			r.segs = append(r.segs, g[from:len(g):len(g)], sl.recs)
			r.size += len(g) - from + len(sl.recs)
			from = len(g)
		}
		g = k.format.AppendPartitionEnd(g)
	}
	g = k.format.AppendTail(g)
	if from < len(g) {
		r.segs = append(r.segs, g[from:])
		r.size += len(g) - from
	}
	r.glue = g
	kafka.PutSize(g, r.size)
}

// pump writes what is queued, unless somebody is at it.
func (k *link) pump() {
	if k.writing || k.dead || k.next == k.tail {
		return
	}
	k.writing = true
	if k.out.Direct() {
		for k.next < k.tail && !k.dead {
			if !k.write(false) {
				break
			}
		}
		if k.next == k.tail || k.dead {
			k.rest()
			return
		}
	}
	k.handed = true
	k.cond.Broadcast()
}

// rest ends writing.
func (k *link) rest() {
	k.writing, k.handed, k.slow = false, false, false
	for i, r := range k.limbo {
		k.free(r)
		k.limbo[i] = nil
	}
	k.limbo = k.limbo[:0]
	if k.dead || k.adopting {
		k.cond.Broadcast()
	}
}

// flusher writes what the socket would not take at once.
func (k *link) flusher() {
	s := k.l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for !k.handed && !k.dead {
			k.cond.Wait()
		}
		if !k.handed {
			return
		}
		for k.next < k.tail && !k.dead {
			k.write(true)
			s.deliver()
			k.l.ready(s.p.sink.Now())
		}
		k.rest()
		k.l.ready(s.p.sink.Now())
	}
}

// write writes as much of the queue as fits a vector, and gives up the lock
// meanwhile. With wait it waits until the socket takes some. False: the socket
// took less than it was given, or the link is dead.
func (k *link) write(wait bool) bool {
	s := k.l.s
	k.out.Reset()
	k.marks = k.marks[:0]
	skip, total := k.offset, 0
	n := k.next
	for ; n < k.tail; n++ {
		r := k.at(n)
		got := k.out.Add(r.segs, skip)
		k.marks = append(k.marks, mark{got, got == r.size-skip})
		total += got
		if got < r.size-skip {
			n++
			break // the vector is full
		}
		skip = 0
	}
	k.upto = n
	k.waited = k.handed && (k.out.Direct() || k.slow)
	s.mu.Unlock()
	wrote, err := k.out.Write(wait)
	s.mu.Lock()
	k.slow = k.out.Slow()
	s.p.written.Add(uint64(wrote))
	k.advance(wrote)
	if err != nil {
		k.kill(err)
	}
	return wrote == total && !k.dead
}

// advance notes that n bytes were written.
func (k *link) advance(n int) {
	s := k.l.s
	at := k.out.Began()
	k.unsent -= n
	if n > 0 {
		k.moved = s.now
	}
	for _, m := range k.marks {
		if n == 0 {
			break
		}
		if k.next >= k.head { // else it is answered already
			k.stamp(k.at(k.next), at)
		}
		if n < m.bytes || !m.rest {
			w := min(n, m.bytes)
			k.offset += w
			n -= w
			continue // the vector ended here: n is 0
		}
		n -= m.bytes
		k.next++
		k.offset = 0
	}
	k.upto = k.next // only while it is being written may a request turn out to be whole
	if k.head > k.next {
		k.kill(errEarly)
	}
	if k.format.Acks == 0 {
		for k.head < k.next && k.at(k.head).reply == nil {
			r := k.pop()
			for _, sl := range r.slots {
				s.gone(sl)
			}
			k.free(r)
		}
	}
}

// stamp notes when the first byte of a request was written.
func (k *link) stamp(r *request, at time.Duration) {
	if r.sent >= 0 {
		return
	}
	r.sent = at
	for _, sl := range r.slots {
		if sl.sent < 0 {
			sl.sent = at
			if k.waited {
				// It waited behind a socket that took no more: the
				// system's doing, not the generator's.
				sl.batch.Free = max(sl.batch.Free, at)
			}
		}
	}
}

// pop takes the oldest request out of the queue.
func (k *link) pop() *request {
	i := k.head % uint64(len(k.ring))
	r := k.ring[i]
	k.ring[i] = nil
	k.head++
	k.moved = k.l.s.now
	if k.paused && k.head == k.tail {
		k.cond.Broadcast() // whoever wants to end it waits for that
	}
	return r
}

// free takes back a request and those of its slots that are completed.
func (k *link) free(r *request) {
	s := k.l.s
	for i, sl := range r.slots {
		if sl != nil && sl.live < 0 {
			s.release(sl)
		}
		r.slots[i] = nil
	}
	r.slots = r.slots[:0]
	clear(r.segs)
	r.reply = nil
	s.freeRequests = append(s.freeRequests, r)
}

// kill ends the connection; the reader notices, and cleans up.
func (k *link) kill(cause error) {
	if k.dead {
		return
	}
	k.dead, k.cause = true, cause
	close(k.over)
	socket.Abort(k.nc)
	k.cond.Broadcast()
}
