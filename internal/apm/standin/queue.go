package standin

import (
	"sync/atomic"
	"time"
)

// A queue contains the accepted events that are not indexed yet. Without an index,
// events leave it at once or at a rate.
type queue struct {
	capacity int64 // in events; 0: no bound
	index    *indexer
	limited  bool
	waiting  atomic.Int64
	lose     atomic.Int64 // events that are yet to be lost
	lost     atomic.Uint64

	stop func(requests func()) // called once
}

func newQueue(o Options) (*queue, error) {
	q := &queue{capacity: int64(o.Queue), limited: o.Drain > 0, stop: func(requests func()) { requests() }}
	q.lose.Store(int64(o.Lose))
	if o.Index != "" {
		var err error
		if q.index, err = newIndexer(o, func(n int) { q.waiting.Add(-int64(n)) }); err != nil {
			return nil, err
		}
		q.stop = q.index.end
	}
	if q.limited {
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			q.drain(o.Drain, stop)
		}()
		q.stop = func(requests func()) {
			requests()
			close(stop)
			<-ended
		}
	}
	return q, nil
}

// drain removes events at a rate until stop is closed. Each time it removes what
// is due by then, so that rounding errors do not accumulate.
func (q *queue) drain(rate float64, stop <-chan struct{}) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	last, due := time.Now(), 0.0
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			due += rate * now.Sub(last).Seconds()
			last = now
			n := min(int64(due), q.waiting.Load())
			q.waiting.Add(-n)
			if due -= float64(n); q.waiting.Load() == 0 {
				due = min(due, 1) // an idle output does not accumulate a budget
			}
		}
	}
}

// indexes reports whether documents are written.
func (q *queue) indexes() bool { return q.index != nil }

// reserve reserves room for n events; ok: there was enough.
func (q *queue) reserve(n int) (ok bool) {
	for {
		// waiting must never exceed the capacity, not even briefly: other requests
		// would find the queue full.
		was := q.waiting.Load()
		if q.capacity > 0 && was+int64(n) > q.capacity {
			return false
		}
		if q.waiting.CompareAndSwap(was, was+int64(n)) {
			return true
		}
	}
}

// release gives back the room of n events that were not put.
func (q *queue) release(n int) { q.waiting.Add(-int64(n)) }

// put adds n events for which room was reserved: a line of this kind, or a
// document of v1.
func (q *queue) put(n int, meta *metadata, kind string, p []byte) {
	if q.index == nil {
		if !q.limited {
			q.waiting.Add(-int64(n))
		}
		return
	}
	docs := documents(meta, kind, p, time.Now())
	for _, d := range docs {
		if q.lose.Load() > 0 && q.lose.Add(-1) >= 0 {
			q.lost.Add(1)
			q.waiting.Add(-1)
			continue
		}
		q.index.put(d)
	}
	// An event that was counted and made no document would wait for ever.
	if missing := n - len(docs); missing > 0 {
		q.index.fail(missing, "no document could be made of an event")
	}
}

func (q *queue) add(c *Counts) {
	c.Waiting = uint64(max(0, q.waiting.Load()))
	c.Lost = q.lost.Load()
	if q.index != nil {
		c.Indexed, c.Failed = q.index.indexed.Load(), q.index.failed.Load()
	}
}

// close waits for requests to end and, for some seconds, until everything is
// indexed. Call it once.
func (q *queue) close(requests func()) { q.stop(requests) }
