package store

import (
	"errors"
	"sync"
	"time"

	"carronade/internal/report"
)

// ErrGone is why a report takes no more intervals: it is no longer this run's.
var ErrGone = errors.New("the report was taken for one of a killed run, or deleted")

// A Queue is where a run leaves its intervals for a store: a goroutine of its
// own waits for the disk or the network, so that the run does not. What a store
// does not take is offered again together with what comes after it.
type Queue struct {
	keep func(batch []report.Encoded) error
	beat func()

	mu      sync.Mutex
	pending []report.Encoded
	bytes   int // of them
	closed  bool
	gone    bool
	failed  int // tries that failed

	wake chan struct{} // something is pending, or the queue was closed
	done chan struct{} // the goroutine has ended
}

// mostWaiting bounds what waits for a store that is slow or away, in bytes of
// JSON. Beyond it the oldest intervals wait for the run's end, where there is
// the whole report.
const mostWaiting = 32 << 20

// NewQueue starts one. keep keeps a batch, all of it or, with an error, in such
// a way that the same batch and more can be kept later; beat says that the
// process is still there, once a Pulse. Both are called by the goroutine alone;
// after an error that wraps ErrGone neither is.
func NewQueue(keep func(batch []report.Encoded) error, beat func()) *Queue {
	q := &Queue{keep: keep, beat: beat, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
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

func (q *Queue) run() {
	defer close(q.done)
	pulse := time.NewTicker(Pulse)
	defer pulse.Stop()
	for {
		tell := false
		select {
		case <-q.wake:
		case <-pulse.C:
			tell = true
		}
		q.mu.Lock()
		batch, bytes, closed, gone := q.pending, q.bytes, q.closed, q.gone
		q.pending, q.bytes = nil, 0
		q.mu.Unlock()
		if len(batch) > 0 && !gone {
			q.settle(batch, bytes, q.keep(batch))
		}
		if closed {
			return
		}
		if tell && !gone {
			q.beat()
		}
	}
}

// settle puts a batch back that was not kept.
func (q *Queue) settle(batch []report.Encoded, bytes int, err error) {
	if err == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed++
	if q.gone = errors.Is(err, ErrGone); q.gone {
		q.pending, q.bytes = nil, 0
		return
	}
	q.pending = append(batch, q.pending...)
	q.bytes += bytes
	q.bound()
}

// Close ends the goroutine once it has tried to keep what is pending.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.nudge()
	<-q.done
}

// Failed returns how many batches were not kept when they were tried.
func (q *Queue) Failed() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failed
}
