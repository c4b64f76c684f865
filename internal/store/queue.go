package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"carronade/internal/report"
)

// ErrGone is why a report takes no more intervals: it is no longer this run's.
var ErrGone = errors.New("the report was deleted, or its run was taken for killed")

// A Queue is where a run leaves its intervals for a store: a goroutine of its
// own waits for the disk or the network, so that the run does not. What a store
// does not take is offered again after a pause, with what came meanwhile.
type Queue struct {
	keep   func(ctx context.Context, batch []report.Encoded) error
	beat   func(ctx context.Context)
	cancel context.CancelFunc

	mu      sync.Mutex
	pending []report.Encoded
	bytes   int // of them
	closed  bool
	gone    bool
	failing bool // the last try failed
	failed  int  // tries that failed

	wake chan struct{} // something is pending, or the queue was closed
	done chan struct{} // the goroutine has ended
}

const (
	// mostWaiting bounds what waits for a store that is slow or away, in bytes of
	// JSON. Beyond it the oldest intervals wait for the run's end, where there is
	// the whole report.
	mostWaiting = 32 << 20
	// mostTried is what is offered to a store that failed: trying costs the
	// process that measures.
	mostTried = 4 << 20
	// leastPause is the pause after a failure; it doubles up to a Pulse.
	leastPause = time.Second
)

// NewQueue starts one. keep keeps a batch, all of it or, with an error, in such
// a way that the same batch and more can be kept later; beat says that the
// process is still there, once a Pulse. Both are called by the goroutine alone;
// after an error that wraps ErrGone neither is. Their context ends when the
// queue is closed while the store fails.
func NewQueue(keep func(ctx context.Context, batch []report.Encoded) error, beat func(ctx context.Context)) *Queue {
	ctx, cancel := context.WithCancel(context.Background()) // not the run's: an interrupted run keeps its intervals
	q := &Queue{keep: keep, beat: beat, cancel: cancel, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run(ctx)
	return q
}

// Add leaves an interval. It waits for nothing.
func (q *Queue) Add(e report.Encoded) {
	q.mu.Lock()
	if !q.gone && !q.closed {
		q.pending = append(q.pending, e)
		q.bytes += len(e.JSON)
		q.bound()
	}
	q.mu.Unlock()
	q.nudge()
}

// bound lets go of the oldest intervals. The lock is held.
func (q *Queue) bound() {
	n := 0
	for ; q.bytes > mostWaiting && n < len(q.pending)-1; n++ {
		q.bytes -= len(q.pending[n].JSON)
	}
	q.pending = q.pending[n:]
}

func (q *Queue) nudge() {
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
		again <-chan time.Time // a pause is over; nil: there is none
	)
	for {
		warn := false
		select {
		case <-q.wake:
		case <-again:
			again = nil
		case <-pulse.C:
			warn = true
		}
		batch, over := q.take(again != nil)
		if len(batch) > 0 {
			if q.putBack(batch, q.keep(ctx, batch)) {
				pause = min(max(2*pause, leastPause), Pulse)
				again = time.After(pause)
			} else {
				pause = 0
				q.nudge() // what was not offered yet
			}
		}
		if over {
			return
		}
		if warn && !q.isGone() {
			q.beat(ctx)
		}
	}
}

// take takes out what is to be kept now. Over: the queue was closed, and after
// that it ends.
func (q *Queue) take(resting bool) (batch []report.Encoded, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone || q.failing && (resting || q.closed) { // Finish keeps it all
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

// putBack puts a batch back that was not kept, and reports whether it is to be
// tried again.
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
	q.bound()
	return true
}

func (q *Queue) isGone() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.gone
}

// Close ends the goroutine once what is pending is kept; a store that fails is
// not tried again.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	if q.failing {
		q.cancel()
	}
	q.mu.Unlock()
	q.nudge()
	<-q.done
	q.cancel()
}

// Failed returns how many batches were not kept when they were tried.
func (q *Queue) Failed() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failed
}
