package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"carronade/internal/report"
)

// ErrGone is why a report accepts no more intervals: it no longer belongs to
// this run.
var ErrGone = errors.New("the report was deleted, or its run was considered killed")

// A Queue passes the intervals of a run to a store: its goroutine waits for the
// disk or the network, so that the run does not have to. Intervals that the
// store does not accept are offered again after a pause, together with newer
// ones.
type Queue struct {
	keep   func(ctx context.Context, batch []report.Encoded) error
	beat   func(ctx context.Context)
	cancel context.CancelFunc

	mu      sync.Mutex
	pending []report.Encoded
	bytes   int // of pending
	closed  bool
	gone    bool
	failing bool // the last attempt failed
	failed  int  // failed attempts

	wake chan struct{} // something is pending, or the queue was closed
	done chan struct{} // the goroutine has ended
}

const (
	// mostWaiting limits the pending intervals of a slow or unavailable store,
	// in bytes of JSON. Beyond it the oldest intervals are dropped here: Finish
	// stores the complete report.
	mostWaiting = 32 << 20
	// mostTried limits what is offered to a store that failed, since attempts
	// burden the measuring process.
	mostTried = 4 << 20
	// leastPause is the pause after a failure; it doubles up to a Pulse.
	leastPause = time.Second
)

// NewQueue starts a queue. keep stores a batch; after an error a part of it may
// be stored, and keep gets the same batch and more again. beat reports that the
// process is still alive, once per Pulse. Both are called only by the queue's
// goroutine, and not after an error that wraps ErrGone. Their context ends if
// the queue is closed while the store is failing.
func NewQueue(keep func(ctx context.Context, batch []report.Encoded) error, beat func(ctx context.Context)) *Queue {
	ctx, cancel := context.WithCancel(context.Background()) // not the run's: an interrupted run keeps its intervals
	q := &Queue{keep: keep, beat: beat, cancel: cancel, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run(ctx)
	return q
}

// Add queues an interval without blocking.
func (q *Queue) Add(e report.Encoded) {
	q.mu.Lock()
	if !q.gone && !q.closed {
		q.pending = append(q.pending, e)
		q.bytes += len(e.JSON)
		q.dropOldest()
	}
	q.mu.Unlock()
	q.wakeUp()
}

// dropOldest drops the oldest intervals beyond the limit. The lock is held.
func (q *Queue) dropOldest() {
	n := 0
	for ; q.bytes > mostWaiting && n < len(q.pending)-1; n++ {
		q.bytes -= len(q.pending[n].JSON)
	}
	q.pending = q.pending[n:]
}

func (q *Queue) wakeUp() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *Queue) run(ctx context.Context) {
	defer close(q.done)
	pulse := time.NewTicker(Pulse)
	defer pulse.Stop()
	var (
		pause time.Duration
		again <-chan time.Time // ends a pause; nil: there is none
	)
	for {
		beat := false
		select {
		case <-q.wake:
		case <-again:
			again = nil
		case <-pulse.C:
			beat = true
		}
		batch, over := q.take(again != nil)
		if len(batch) > 0 {
			if q.putBack(batch, q.keep(ctx, batch)) {
				pause = min(max(2*pause, leastPause), Pulse)
				again = time.After(pause)
			} else {
				pause = 0
				q.wakeUp() // what was not offered yet
			}
		}
		if over {
			return
		}
		if beat && !q.isGone() {
			q.beat(ctx)
		}
	}
}

// take removes the intervals to store now. over: the queue was closed, and ends
// after them.
func (q *Queue) take(pausing bool) (batch []report.Encoded, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone || q.failing && (pausing || q.closed) { // Finish stores all of it
		return nil, q.closed
	}
	n, bytes := len(q.pending), q.bytes
	if q.failing {
		for n, bytes = 0, 0; n < len(q.pending) && (n == 0 || bytes+len(q.pending[n].JSON) <= mostTried); n++ {
			bytes += len(q.pending[n].JSON)
		}
	}
	batch, q.pending = q.pending[:n:n], q.pending[n:]
	q.bytes -= bytes
	return batch, q.closed
}

// putBack puts back a batch that was not stored, and reports whether to try
// again.
func (q *Queue) putBack(batch []report.Encoded, err error) (again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failing = err != nil
	if err == nil {
		return false
	}
	q.failed++
	if q.gone = errors.Is(err, ErrGone); q.gone {
		q.pending, q.bytes = nil, 0
		return false
	}
	for i := range batch {
		q.bytes += len(batch[i].JSON)
	}
	q.pending = append(batch, q.pending...)
	q.dropOldest()
	return true
}

func (q *Queue) isGone() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.gone
}

// Close ends the goroutine once the pending intervals are stored; a failing
// store is not tried again.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	if q.failing {
		q.cancel()
	}
	q.mu.Unlock()
	q.wakeUp()
	<-q.done
	q.cancel()
}

// Failed returns the number of failed attempts.
func (q *Queue) Failed() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failed
}
