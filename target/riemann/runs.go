package riemann

import (
	"time"

	"carronade/load"
)

// A run is what is left of a batch, or of a batch group of them, on its way: so many
// messages, one after the other, that were fired together and are written
// together.
type run struct {
	batch load.Batch    // of what is left: Seq, First, Batches, Events and Bytes
	last  uint64        // number of the message after its last one, in the lane's stream
	wire  int64         // bytes on the wire
	sent  time.Duration // when the first byte of the first went; -1: it has not
}

// batches is how many messages are left.
func (r *run) batches() uint64 { return uint64(max(r.batch.Batches, 1)) }

// first is the number of the first message left.
func (r *run) first() uint64 { return r.last - r.batches() }

// take cuts the first n messages off, which must be fewer than there are. The
// bytes are divided evenly: messages of a batch group are of one make-up, and what
// its outcomes say of them adds up.
func (r *run) take(n uint64) run {
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

// runs is the queue of what is on its way, oldest first: a ring that grows.
type runs struct {
	ring       []run
	head, tail uint64 // by running number; the ring's size is a power of two
}

func (q *runs) at(i uint64) *run { return &q.ring[i&uint64(len(q.ring)-1)] }

func (q *runs) empty() bool { return q.head == q.tail }

// push adds one at the end and returns its place, valid until the next push.
func (q *runs) push() *run {
	if q.tail-q.head == uint64(len(q.ring)) {
		ring := make([]run, max(64, 2*len(q.ring)))
		for i := q.head; i < q.tail; i++ {
			ring[i&uint64(len(ring)-1)] = *q.at(i)
		}
		q.ring = ring
	}
	q.tail++
	return q.at(q.tail - 1)
}

// split makes two of run i, of which the first has n messages. It moves what
// comes after, which is little: only batch groups are split.
func (q *runs) split(i, n uint64) {
	q.push()
	for j := q.tail - 1; j > i+1; j-- {
		*q.at(j) = *q.at(j - 1)
	}
	rest := *q.at(i)
	part := rest.take(n)
	*q.at(i), *q.at(i + 1) = part, rest
}
