package trace

import (
	"sync"
	"sync/atomic"
	"time"

	"carronade/load"
)

const (
	// blockRows is how many rows change hands at once: 512 KB, so that handing
	// over costs nothing a row.
	blockRows = 4096
	// stale is how old a row may get before its block is handed over, by the
	// times of the rows that follow.
	stale = 250 * time.Millisecond
)

// A block is rows on their way to the writer.
type block struct {
	n    int
	rows [blockRows]row
}

// A Feed takes the rows of one goroutine. It never blocks, and allocates
// nothing but blocks while there are too few.
type Feed struct {
	t       *Trace
	b       *block
	since   time.Duration // when the block's first row was done
	dropped atomic.Uint64
}

// Fired adds what became of batches. The slice is not kept.
func (f *Feed) Fired(out []load.Outcome) {
	for i := range out {
		f.add(&out[i], never)
	}
}

// One adds what became of one batch.
func (f *Feed) One(o *load.Outcome) { f.add(o, never) }

func (f *Feed) add(o *load.Outcome, consumed time.Duration) {
	b := f.b
	if b == nil {
		if b = f.t.block(); b == nil {
			f.drop(o)
			return
		}
		f.b, f.since = b, o.Done
	}
	b.rows[b.n].set(o, consumed)
	b.n++
	if b.n == blockRows || o.Done-f.since > stale {
		f.hand()
	}
}

// hand gives the block to the writer. There is always room: the channel holds
// all blocks that there are.
func (f *Feed) hand() {
	if f.b != nil && f.b.n > 0 {
		f.t.full <- f.b
		f.b = nil
	}
}

func (f *Feed) drop(o *load.Outcome) {
	var r row
	r.set(o, never)
	f.dropped.Add(f.t.rowsOf(&r))
}

// A Meeting takes rows of events that were consumed, from any goroutine: they
// are few, and come in batches. What comes after Close is left out.
type Meeting struct {
	mu     sync.Mutex
	f      *Feed
	closed bool
}

// Consumed adds events of a batch, all or a part, that were consumed at a time.
func (m *Meeting) Consumed(o *load.Outcome, at time.Duration) { m.add(o, at) }

// Missed adds events of a batch that never came back.
func (m *Meeting) Missed(o *load.Outcome) { m.add(o, never) }

func (m *Meeting) add(o *load.Outcome, at time.Duration) {
	if due := m.f.t.o.Due; due != nil && o.DueFirst != o.DueLast {
		part := *o // which may have the due times of the whole
		part.DueFirst, part.DueLast = due(o.Stream, o.First), due(o.Stream, o.First+uint64(o.Events)-1)
		o = &part
	}
	m.mu.Lock()
	if !m.closed {
		m.f.add(o, at)
	}
	m.mu.Unlock()
}

// close waits for who is adding: a consumer may not know that the run is over.
func (m *Meeting) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
}
