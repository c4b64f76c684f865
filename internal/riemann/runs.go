package riemann

import (
	"sync"
	"time"

	"carronade/internal/conn"
	"carronade/load"
)

// A run is the uncompleted rest of a batch, or of a batch group: consecutive
// messages that were sent, and are written, together.
type run struct {
	batch load.Batch    // its Seq, First, Batches, Events and Bytes are those of the rest
	last  uint64        // number of the message after its last one, in the lane's stream
	wire  int64         // bytes on the wire
	sent  time.Duration // when the first byte of its first message was written; -1: not yet
}

// batches is how many messages are left.
func (r *run) batches() uint64 { return uint64(max(r.batch.Batches, 1)) }

// first is the number of the first message left.
func (r *run) first() uint64 { return r.last - r.batches() }

// cut removes the first n messages, which must be fewer than all, and returns
// them as a run. It divides the bytes evenly: messages of a batch group are
// alike, and the bytes of its outcomes add up.
func (r *run) cut(n uint64) run {
	part, all := *r, r.batches()
	share := func(x *int64) int64 {
		y := *x / int64(all) * int64(n)
		*x -= y
		return y
	}
	each := r.batch.Events / int32(all)
	part.last = r.first() + n
	part.batch.Batches = int32(n)
	part.batch.Events = each * int32(n)
	part.batch.Bytes = share(&r.batch.Bytes)
	part.wire = share(&r.wire)
	r.batch.Seq += n
	r.batch.First += uint64(part.batch.Events)
	r.batch.Batches -= int32(n)
	r.batch.Events -= part.batch.Events
	return part
}

// runs is the queue of uncompleted runs, oldest first: a ring that grows. It is borrowed
// while there are any, since of thousands of connections few have some at a time.
type runs struct {
	ring       []run
	head, tail uint64 // by running number; the ring's size is a power of two
}

// rings lends rings of 4 runs or more.
var rings = conn.Pool[run]{Least: 2, Most: 14}

// trim returns the ring of an empty queue.
func (q *runs) trim() {
	if q.empty() {
		rings.Return(q.ring)
		q.ring = nil
	}
}

func (q *runs) at(i uint64) *run { return &q.ring[i&uint64(len(q.ring)-1)] }

func (q *runs) empty() bool { return q.head == q.tail }

// push adds a run at the end and returns it, valid until the next push.
func (q *runs) push() *run {
	if q.tail-q.head == uint64(len(q.ring)) {
		old := *q
		q.ring = rings.Borrow(2 * len(old.ring))
		q.ring = q.ring[:cap(q.ring)]
		for i := q.head; i < q.tail; i++ {
			*q.at(i) = *old.at(i)
		}
		rings.Return(old.ring)
	}
	q.tail++
	return q.at(q.tail - 1)
}

// split splits run i in two, of which the first has n messages. It moves the
// runs behind it, which are few: only batch groups are split.
func (q *runs) split(i, n uint64) {
	q.push()
	for j := q.tail - 1; j > i+1; j-- {
		*q.at(j) = *q.at(j - 1)
	}
	rest := *q.at(i)
	part := rest.cut(n)
	*q.at(i), *q.at(i + 1) = part, rest
}

// A messages is the messages that a lane has encoded and not queued yet, and an outcomes those
// that it has completed and not delivered yet. Like the ring, they are borrowed.
type (
	messages struct{ all []run }
	outcomes struct{ all []load.Outcome }
)

var (
	freeMessages = sync.Pool{New: func() any { return new(messages) }}
	freeOutcomes = sync.Pool{New: func() any { return new(outcomes) }}
)

func (m *messages) count() int {
	if m == nil {
		return 0
	}
	return len(m.all)
}
