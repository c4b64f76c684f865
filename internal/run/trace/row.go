package trace

import (
	"time"

	"carronade/load"
)

// absent marks a missing time, offset or index.
const absent = -1

// A Row is what a function gets of a row. Times, logs and offsets that do not exist are
// negative. It is valid during the call.
type Row struct {
	Stream    int32
	Event     uint64 // the first one within the stream
	Key       []byte // of a single event; nil: unknown
	Phase     string
	Due       time.Duration
	Sent      time.Duration
	Done      time.Duration
	Requested time.Duration
	Consumed  time.Duration
	Partition int32
	Offset    int64
	Events    int32
	Bytes     int64
	Acked     int32
	Class     load.Class
}

// A row is the recorded part of an outcome: of a batch, a batch group of equal
// batches, or a part of a batch that was consumed separately.
type row struct {
	seq, index                   uint64
	due, dueLast, sent, done, at time.Duration // at: consumed
	requested                    time.Duration
	offset                       int64
	bytes, wire                  int64
	lane, stream                 int32
	events, batches              int32
	acked, failed                int32 // the rest is unknown
	attempt, retries, phase      int32
	status                       int16
	class                        load.Class
}

// set fills the row in place, because rows are large and there are millions per
// second.
func (r *row) set(o *load.Outcome, requested, consumed time.Duration) {
	// Field by field: a composite literal would be built separately and copied.
	r.seq, r.index = o.Seq, o.First
	r.due, r.dueLast, r.sent, r.done, r.at = o.DueFirst, o.DueLast, o.SentFirst(), o.Done, consumed
	r.requested = requested
	r.offset, r.bytes, r.wire = o.Place, o.Bytes, o.Wire
	r.lane, r.stream, r.events, r.batches = o.Lane, o.Stream, o.Events, max(o.Batches, 1)
	r.acked, r.failed = o.Acked, o.Failed
	r.attempt, r.retries, r.phase = o.Attempt, o.Retries, o.Phase
	r.status, r.class = o.Status, o.Class
}

// unknown are the events without a certain answer. They are not stored: a row fills two cache
// lines.
func (r *row) unknown() int32 { return r.events - r.acked - r.failed }

// share is the i-th of n nearly equal parts of whole; the parts add up to it.
func share(whole int64, i, n int32) int64 {
	if n == 1 {
		return whole
	}
	return whole*int64(i+1)/int64(n) - whole*int64(i)/int64(n)
}

// batch is the i-th batch of the batch group r.
func (r *row) batch(i int32) row {
	s := *r
	n := r.batches
	each := r.events / n
	s.seq += uint64(i)
	s.index += uint64(i) * uint64(each)
	s.batches, s.events = 1, each
	if r.offset >= 0 {
		s.offset += int64(i) * int64(each)
	}
	s.bytes, s.wire = share(r.bytes, i, n), share(r.wire, i, n)
	s.acked, s.failed = r.acked/n, r.failed/n
	return s
}

// event is the k-th event of the batch r. If the batch was accepted in part, it is
// not known which events were; the first ones count as accepted, the next ones as
// failed.
func (r *row) event(k int32, due time.Duration) row {
	e := *r
	e.index += uint64(k)
	if r.offset >= 0 {
		e.offset += int64(k)
	}
	e.due, e.dueLast = due, due
	e.events, e.bytes, e.wire = 1, share(r.bytes, k, r.events), share(r.wire, k, r.events)
	e.acked, e.failed = 0, 0
	switch {
	case k < r.acked:
		e.acked, e.class = 1, load.OK
	case k < r.acked+r.failed:
		e.failed = 1
	}
	return e
}

// The outcomes of a row, as indices into the column's dictionary.
const (
	wordAcked = iota
	wordFailed
	wordUnknown
	wordMixed
)

var outcomeWords = []string{"acked", "failed", "unknown", "mixed"}

func (r *row) outcome() int32 {
	switch r.events {
	case r.acked:
		return wordAcked
	case r.failed:
		return wordFailed
	case r.unknown():
		return wordUnknown
	}
	return wordMixed
}

// A sampler chooses one of every `every` consecutive events of a stream, at random
// but deterministically: for a seed, every run has the same choice.
type sampler struct {
	every uint64
	seed  uint64
}

// chosen is the index of the chosen event of a bucket.
func (s *sampler) chosen(stream int32, bucket uint64) uint64 {
	return bucket*s.every + mix(s.seed^uint64(stream)<<40^bucket)%s.every
}

// each calls f for the chosen events of [first, first+n), with their positions
// relative to first.
func (s *sampler) each(stream int32, first uint64, n int32, f func(k int32)) {
	end := first + uint64(n)
	for b := first / s.every; b*s.every < end; b++ {
		if i := s.chosen(stream, b); i >= first && i < end {
			f(int32(i - first))
		}
	}
}

// mix spreads the bits of x (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
