package franz

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
	"carronade/load"
)

// A lane is one partition of one client.
type lane struct {
	s         *sender
	id        int
	partition int32

	inTransaction []eventRange // its events in the open transaction; guarded by transactor.mu

	mu       sync.Mutex // guards the fields below and the order of calls of Complete
	live     map[*liveBatch]bool
	spare    []*liveBatch // to be reused: records are large
	rejected []*liveBatch // rejected, not yet completed: no transaction can be begun any more
	closed   bool
	out      [1]load.Outcome
}

// A liveBatch is a batch in flight, with its records. Its lane reuses it, with its
// memory.
type liveBatch struct {
	l       *lane
	batch   load.Batch
	sent    time.Duration
	records []kgo.Record
	bytes   []byte             // of records that are fresh or stamped, and of headers that vary
	headers []kgo.RecordHeader // those that vary
	names   []string           // of the last headers
	promise func(*kgo.Record, error)

	pending     atomic.Int32
	acked       atomic.Int32
	failed      atomic.Int32 // the rest is unknown
	firstErr    atomic.Pointer[batchError]
	firstOffset int64 // offset of the first record; written by the promises' goroutine
	lastOffset  int64
}

// A batchError is the first error of a batch.
type batchError struct {
	class load.Class
	text  string
}

// ID implements load.Lane.
func (l *lane) ID() int { return l.id }

// Room implements load.Lane.
func (l *lane) Room(int32, uint64) int { return l.s.p.perBatch }

// Fire implements load.Lane.
func (l *lane) Fire(batches []load.Batch) int {
	s := l.s
	if t := s.txn; t != nil {
		if !t.mu.TryLock() {
			return 0 // a transaction is being ended; Ready is called afterwards
		}
		defer t.mu.Unlock()
		if !t.open && t.broken == "" {
			return 0
		}
	}
	for i := range batches {
		n := int64(batches[i].Events)
		if b := s.buffered.Add(n); b > mostBuffered && b > n {
			s.buffered.Add(-n)
			s.waitsForRoom.Store(true)
			// Room may have become free before waitsForRoom was set.
			if s.buffered.Load() <= mostBuffered/2 && s.waitsForRoom.CompareAndSwap(true, false) {
				s.p.sink.Ready(l.id, s.p.sink.Now())
			}
			return i
		}
		l.send(&batches[i])
	}
	return len(batches)
}

// Capabilities implements load.Lane.
func (*lane) Capabilities() load.LaneCapabilities { return load.LaneCapabilities{} }

// Flush implements load.Lane: franz-go writes when it sees fit.
func (l *lane) Flush() {}

func (l *lane) send(batch *load.Batch) {
	p := l.s.p
	n := int(batch.Events)
	l.mu.Lock()
	var c *liveBatch
	if k := len(l.spare) - 1; k >= 0 {
		c, l.spare = l.spare[k], l.spare[:k]
	} else {
		c = &liveBatch{l: l}
		c.promise = c.recordDone
	}
	l.live[c] = true
	l.mu.Unlock()

	if cap(c.records) < n {
		c.records = make([]kgo.Record, n)
	}
	c.records = c.records[:n]
	c.firstOffset, c.lastOffset = -1, -1
	c.pending.Store(int32(n))
	c.acked.Store(0)
	c.failed.Store(0)
	c.firstErr.Store(nil)
	c.sent = p.sink.Now()
	batch.Bytes = p.content.fill(c, batch)
	c.batch = *batch
	if t := l.s.txn; t != nil {
		if !t.open {
			l.reject(c, t.broken)
			return
		}
		t.events += n
		l.addToTransaction(batch)
	}
	ctx := context.Background()
	for i := range c.records {
		l.s.client.Produce(ctx, &c.records[i], c.promise)
	}
}

// reject keeps a batch that can no longer be sent until completeRejected.
func (l *lane) reject(c *liveBatch, why string) {
	c.sent = -1
	c.failed.Store(c.batch.Events)
	c.firstErr.Store(&batchError{load.Rejected, why})
	l.mu.Lock()
	l.rejected = append(l.rejected, c)
	l.mu.Unlock()
}

// completeRejected completes the rejected batches. Without it, a run that waits for
// a number of events would never end.
func (s *sender) completeRejected() {
	for _, l := range s.lanes {
		l.mu.Lock()
		rejected := l.rejected
		l.rejected = nil
		l.mu.Unlock()
		for _, c := range rejected {
			l.complete(c)
		}
	}
}

// recordDone is the promise of each record. One goroutine of the client calls it.
func (c *liveBatch) recordDone(r *kgo.Record, err error) {
	switch {
	case err != nil:
		class, certain := cluster.Classify(err)
		if certain {
			c.failed.Add(1)
		}
		if c.firstErr.Load() == nil {
			c.firstErr.Store(&batchError{class, err.Error()})
		}
	default:
		if c.l.s.p.cfg.Acks != 0 {
			c.acked.Add(1)
			if note := c.l.s.p.Acked; note != nil {
				note(c.l.partition, r.Offset, 1)
			}
		}
		if c.firstOffset < 0 {
			c.firstOffset = r.Offset
		}
		c.lastOffset = r.Offset
	}
	if c.pending.Add(-1) == 0 {
		c.l.complete(c)
	}
}

// complete reports the outcome of a batch whose promises were all called.
func (l *lane) complete(c *liveBatch) {
	now := l.s.p.sink.Now()
	n := c.batch.Events
	l.mu.Lock()
	if !l.closed {
		o := &l.out[0]
		*o = load.Outcome{Batch: c.batch, Lane: int32(l.id), Sent: c.sent, Done: now, Place: -1}
		o.Acked, o.Failed = c.acked.Load(), c.failed.Load()
		o.Unknown = n - o.Acked - o.Failed
		if t := c.firstErr.Load(); t != nil {
			o.Class, o.Text = t.class, t.text
		}
		// Another client's records may lie between ours.
		if o.Acked == n && c.lastOffset-c.firstOffset == int64(n)-1 {
			o.Place = c.firstOffset
		}
		if l.s.p.cfg.Acks == 0 {
			o.Done = o.Sent // the broker does not answer
		} else if o.Acked > 0 {
			var unwritten time.Duration
			o.Earliest, unwritten = l.s.p.attempts.answers.find(l.partition, c.lastOffset, c.sent+l.s.p.cfg.Linger)
			if !l.s.p.cfg.Txn.On { // else the client may have had to ask the coordinator first
				o.Unwritten = unwritten
			}
		}
		l.s.p.sink.Complete(l.out[:])
	}
	delete(l.live, c)
	l.spare = append(l.spare, c)
	l.mu.Unlock()
	l.s.freed(int64(n))
}

// Close implements load.Lane. Batches in flight are unknown: franz-go does not report
// what it has written.
func (l *lane) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	now := l.s.p.sink.Now()
	for c := range l.live {
		o := &l.out[0]
		*o = load.Outcome{Batch: c.batch, Lane: int32(l.id), Sent: c.sent, Done: now, Place: -1, Class: load.Canceled, Text: "the run ended before the client answered"}
		o.Acked, o.Failed = c.acked.Load(), c.failed.Load()
		o.Unknown = c.batch.Events - o.Acked - o.Failed
		if t := c.firstErr.Load(); t != nil {
			o.Class, o.Text = t.class, t.text
		}
		l.s.p.sink.Complete(l.out[:])
	}
	return nil
}
