package trace

import (
	"sync"
	"sync/atomic"
	"time"

	"carronade/load"
)

const (
	// blockRows is the number of rows in a block of 512 KB. It is large, so that
	// handing over costs almost nothing per row.
	blockRows = 4096
	// maxBlockAge is the maximum age of a row before its block is handed over,
	// measured by the times of later rows.
	maxBlockAge = 250 * time.Millisecond
)

// A block contains rows for the writer.
type block struct {
	n    int
	rows [blockRows]row
}

// A Feed receives the rows of one goroutine. It never blocks, and allocates only
// blocks, while there are too few.
type Feed struct {
	t       *Trace
	b       *block
	since   time.Duration // completion time of the block's first row
	dropped atomic.Uint64
}

// Add adds outcomes of batches. It does not retain the slice.
func (f *Feed) Add(out []load.Outcome) {
	for i := range out {
		f.add(&out[i], absent, absent)
	}
}

// AddOne adds the outcome of one batch.
func (f *Feed) AddOne(o *load.Outcome) { f.add(o, absent, absent) }

func (f *Feed) add(o *load.Outcome, requested, consumed time.Duration) {
	b := f.b
	if b == nil {
		if b = f.t.block(); b == nil {
			f.drop(o)
			return
		}
		f.b, f.since = b, o.Done
	}
	b.rows[b.n].set(o, requested, consumed)
	b.n++
	if b.n == blockRows || o.Done-f.since > maxBlockAge {
		f.handOver()
	}
}

// handOver gives the block to the writer. The channel always has room, because its
// capacity is the maximum number of blocks.
func (f *Feed) handOver() {
	if f.b != nil && f.b.n > 0 {
		f.t.full <- f.b
		f.b = nil
	}
}

func (f *Feed) drop(o *load.Outcome) {
	var r row
	r.set(o, absent, absent)
	f.dropped.Add(f.t.rowsOf(&r))
}

// A SharedFeed receives rows of consumed events from any goroutine: they are few
// and come in batches. Rows after Close are left out.
type SharedFeed struct {
	mu     sync.Mutex
	f      *Feed
	closed bool
}

// Consumed adds events of a batch, or of a part of one, that were consumed at this
// time.
func (m *SharedFeed) Consumed(o *load.Outcome, at time.Duration) { m.add(o, absent, at) }

// Read adds events of a batch that were read by a request of their own, which began at a
// time.
func (m *SharedFeed) Read(o *load.Outcome, requested, at time.Duration) { m.add(o, requested, at) }

// Missed adds events of a batch that never came back.
func (m *SharedFeed) Missed(o *load.Outcome) { m.add(o, absent, absent) }

func (m *SharedFeed) add(o *load.Outcome, requested, at time.Duration) {
	if due := m.f.t.o.Due; due != nil && o.DueFirst != o.DueLast {
		part := *o // it may have the due times of the complete batch
		part.DueFirst, part.DueLast = due(o.Stream, o.First), due(o.Stream, o.First+uint64(o.Events)-1)
		o = &part
	}
	m.mu.Lock()
	if !m.closed {
		m.f.add(o, requested, at)
	}
	m.mu.Unlock()
}

// close waits for a concurrent add: a consumer may not know that the run is over.
func (m *SharedFeed) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
}
