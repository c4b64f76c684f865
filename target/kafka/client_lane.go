package kafka

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/load"
)

// A clientLane is one partition of one client.
type clientLane struct {
	s         *clientSender
	id        int
	partition int32

	fired []member // its events in the open transaction, guarded by that

	mu     sync.Mutex // guards what follows and the order of Settle
	live   map[*clientBatch]bool
	idle   []*clientBatch // used again: records are large
	turned []*clientBatch // turned away, to be completed: there are no transactions any more
	closed bool
	out    [1]load.Outcome
}

// A clientBatch is a batch with its records, on its way. It is used again, with
// its memory, by its lane.
type clientBatch struct {
	l       *clientLane
	batch   load.Batch
	sent    time.Duration
	records []kgo.Record
	bytes   []byte // of records that are fresh or stamped
	promise func(*kgo.Record, error)

	pending atomic.Int32
	acked   atomic.Int32
	failed  atomic.Int32 // the others are unknown
	trouble atomic.Pointer[trouble]
	first   int64 // offset of the first record; written by the promises' goroutine
	last    int64
}

// A trouble is the first error of a batch.
type trouble struct {
	class load.Class
	text  string
}

// ID implements load.Lane.
func (l *clientLane) ID() int { return l.id }

// Room implements load.Lane.
func (l *clientLane) Room(int32, uint64) int { return l.s.p.perBatch }

// Fire implements load.Lane.
func (l *clientLane) Fire(batches []load.Batch) int {
	s := l.s
	if t := s.txn; t != nil {
		if !t.mu.TryLock() {
			return 0 // a transaction ends: its end calls Ready
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
			s.refused.Store(true)
			// What was in the way may have gone before it was said.
			if s.buffered.Load() <= mostBuffered/2 && s.refused.CompareAndSwap(true, false) {
				s.p.sink.Ready(l.id, s.p.sink.Now())
			}
			return i
		}
		l.fire(&batches[i])
	}
	return len(batches)
}

// Flush implements load.Lane: franz-go writes when it sees fit.
func (l *clientLane) Flush() {}

func (l *clientLane) fire(batch *load.Batch) {
	p := l.s.p
	n := int(batch.Events)
	l.mu.Lock()
	var c *clientBatch
	if k := len(l.idle) - 1; k >= 0 {
		c, l.idle = l.idle[k], l.idle[:k]
	} else {
		c = &clientBatch{l: l}
		c.promise = c.kept
	}
	l.live[c] = true
	l.mu.Unlock()

	if cap(c.records) < n {
		c.records = make([]kgo.Record, n)
	}
	c.records = c.records[:n]
	c.first, c.last = -1, -1
	c.pending.Store(int32(n))
	c.acked.Store(0)
	c.failed.Store(0)
	c.trouble.Store(nil)
	c.sent = p.sink.Now()
	batch.Bytes = p.content.fill(c, batch)
	c.batch = *batch
	if t := l.s.txn; t != nil {
		if !t.open {
			l.turnAway(c, t.broken)
			return
		}
		t.events += n
		l.note(batch)
	}
	ctx := context.Background()
	for i := range c.records {
		l.s.client.Produce(ctx, &c.records[i], c.promise)
	}
}

// turnAway keeps a batch that cannot be fired any more until it is refused.
func (l *clientLane) turnAway(c *clientBatch, why string) {
	c.sent = -1
	c.failed.Store(c.batch.Events)
	c.trouble.Store(&trouble{load.Rejected, why})
	l.mu.Lock()
	l.turned = append(l.turned, c)
	l.mu.Unlock()
}

// refuse completes what was turned away. Without it a run that waits for its
// number of events would wait for ever.
func (s *clientSender) refuse() {
	for _, l := range s.lanes {
		l.mu.Lock()
		turned := l.turned
		l.turned = nil
		l.mu.Unlock()
		for _, c := range turned {
			l.complete(c)
		}
	}
}

// kept is called for each record, by one goroutine of the client.
func (c *clientBatch) kept(r *kgo.Record, err error) {
	switch {
	case err != nil:
		class, certain := classify(err)
		if certain {
			c.failed.Add(1)
		}
		if c.trouble.Load() == nil {
			c.trouble.Store(&trouble{class, err.Error()})
		}
	default:
		if c.l.s.p.cfg.acks != 0 {
			c.acked.Add(1)
		}
		if c.first < 0 {
			c.first = r.Offset
		}
		c.last = r.Offset
	}
	if c.pending.Add(-1) == 0 {
		c.l.complete(c)
	}
}

// complete says what became of a batch whose promises were all called.
func (l *clientLane) complete(c *clientBatch) {
	now := l.s.p.sink.Now()
	n := c.batch.Events
	l.mu.Lock()
	if !l.closed {
		o := &l.out[0]
		*o = load.Outcome{Batch: c.batch, Lane: int32(l.id), Sent: c.sent, Done: now, Place: -1}
		o.Acked, o.Failed = c.acked.Load(), c.failed.Load()
		o.Unknown = n - o.Acked - o.Failed
		if t := c.trouble.Load(); t != nil {
			o.Class, o.Text = t.class, t.text
		}
		// Another client's records may lie between ours.
		if o.Acked == n && c.last-c.first == int64(n)-1 {
			o.Place = c.first
		}
		if l.s.p.cfg.acks == 0 {
			o.Done = o.Sent // nothing was answered
		} else if o.Acked > 0 {
			o.Earliest = l.s.p.attempts.answers.earliest(l.partition, c.last, c.sent)
		}
		l.s.p.sink.Complete(l.out[:])
	}
	delete(l.live, c)
	l.idle = append(l.idle, c)
	l.mu.Unlock()
	l.s.freed(int64(n))
}

// Close implements load.Lane. What is still on its way is unknown: franz-go
// does not tell what it has written.
func (l *clientLane) Close() error {
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
		if t := c.trouble.Load(); t != nil {
			o.Class, o.Text = t.class, t.text
		}
		l.s.p.sink.Complete(l.out[:])
	}
	return nil
}
