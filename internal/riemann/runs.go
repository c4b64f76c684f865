package riemann

import (
	"sync"
	"time"

	"carronade/internal/conn"
	"carronade/load"
)

// A batchRun is the uncompleted rest of a batch, or of a batch group: consecutive
// messages that were sent, and are written, together.
type batchRun struct {
	batch load.Batch    // its Seq, First, Batches, Events and Bytes are those of the rest
	last  uint64        // number of the message after its last one, in the lane's stream
	wire  int64         // bytes on the wire
	sent  time.Duration // when the first byte of its first message was written; -1: not yet
}

// batches is how many messages are left.
func (r *batchRun) batches() uint64 { return uint64(max(r.batch.Batches, 1)) }

// first is the number of the first message left.
func (r *batchRun) first() uint64 { return r.last - r.batches() }

// cut removes the first n messages, which must be fewer than all, and returns
// them as a run. It divides the bytes evenly: messages of a batch group are
// alike, and the bytes of its outcomes add up.
func (r *batchRun) cut(n uint64) batchRun {
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

// batchRuns is the queue of uncompleted runs, oldest first: a ring that grows. It is borrowed
// while there are any, since of thousands of connections few have some at a time.
type batchRuns struct {
	ring       []batchRun
	head, tail uint64 // by running number; the ring's size is a power of two
}

// rings lends rings of 4 runs or more.
var rings = conn.Pool[batchRun]{Least: 2, Most: 14}

// trim returns the ring of an empty queue.
func (q *batchRuns) trim() {
	if q.empty() {
		rings.Return(q.ring)
		q.ring = nil
	}
}

func (q *batchRuns) at(i uint64) *batchRun { return &q.ring[i&uint64(len(q.ring)-1)] }

func (q *batchRuns) empty() bool { return q.head == q.tail }

// push adds a run at the end and returns it, valid until the next push.
func (q *batchRuns) push() *batchRun {
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
func (q *batchRuns) split(i, n uint64) {
	q.push()
	for j := q.tail - 1; j > i+1; j-- {
		*q.at(j) = *q.at(j - 1)
	}
	rest := *q.at(i)
	part := rest.cut(n)
	*q.at(i), *q.at(i + 1) = part, rest
}

// A messageBuffer is the messages that a lane has encoded and not queued yet, and an outcomeBuffer those
// that it has completed and not delivered yet. Like the ring, they are borrowed.
type (
	messageBuffer struct{ all []batchRun }
	outcomeBuffer struct{ all []load.Outcome }
)

var (
	freeMessages = sync.Pool{New: func() any { return new(messageBuffer) }}
	freeOutcomes = sync.Pool{New: func() any { return new(outcomeBuffer) }}
)

func (m *messageBuffer) count() int {
	if m == nil {
		return 0
	}
	return len(m.all)
}
