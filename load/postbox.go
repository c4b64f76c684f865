package load

import (
	"sync"
	"time"
)

// A pageQueue passes pages from the threads to the collector: once per interval, not
// once per event.
type pageQueue struct {
	mu     sync.Mutex
	pages  []*page
	owners []int
	upto   []int // per thread: intervals before this one are complete
	errs   []error
	signal chan struct{}
}

func (b *pageQueue) init(threads int) {
	b.upto = make([]int, threads)
	b.signal = make(chan struct{}, 1)
}

func (b *pageQueue) put(thread int, p *page) {
	b.mu.Lock()
	b.pages, b.owners = append(b.pages, p), append(b.owners, thread)
	b.mu.Unlock()
}

// markComplete records that a thread has handed over everything before an interval.
func (b *pageQueue) markComplete(thread, upto int) {
	b.mu.Lock()
	b.upto[thread] = upto
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// markEnded records that a thread has ended.
func (b *pageQueue) markEnded(thread int) { b.markComplete(thread, 1<<62) }

func (b *pageQueue) addError(err error) {
	b.mu.Lock()
	b.errs = append(b.errs, err)
	b.mu.Unlock()
}

// take returns the new pages, the threads that they come from, and the first interval
// that is not complete.
func (b *pageQueue) take() (pages []*page, owners []int, upto int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pages, owners = b.pages, b.owners
	b.pages, b.owners = nil, nil
	upto = 1 << 62
	for _, u := range b.upto {
		upto = min(upto, u)
	}
	return pages, owners, upto
}

// A consumedRecorder records what only the consumption of an event shows. Consumers
// are few and deliver in batches, so one lock is enough.
type consumedRecorder struct {
	mu    sync.Mutex
	rec   recorder
	lower []lowerBounds // per phase of the events
}

// Consumed records that the events of a batch were consumed at a time and arrived no
// earlier than another: the end-to-end time of a round trip, from due (or, if nothing
// was due, from sent) to consumed. It may be called until the plan's Completed returns,
// from any goroutine.
func (r *Run) Consumed(o *Outcome, at, earliest time.Duration) {
	j := &r.consumed
	j.mu.Lock()
	defer j.mu.Unlock()
	pg := j.rec.at(at, int(o.Phase), r.partOf(o.Stream))
	n := uint64(o.Events)
	pg.Consumed += n
	h, lower := hist(&pg.EndToEnd), &j.lower[o.Phase].endToEnd
	sent := o.firstSent()
	// A consumer that did not run also requests its next data later, so all data in
	// transit at that time may be late by as much.
	earliest = max(min(earliest, r.watchdog.earliest(at), at-r.watchdog.within(sent, at)), sent)
	disturbed := r.disturbed.list.Load()
	count := func(due time.Duration, n uint64) {
		h.RecordN(at-due, n)
		lower.record(earliest-due, max(0, sent-max(due, o.Ready, o.Free)), disturbed.at(due), n)
	}
	switch {
	case o.DueFirst < 0:
		h.RecordN(at-sent, n)
		lower.record(earliest-sent, 0, 0, n)
	case o.DueFirst == o.DueLast:
		count(o.DueFirst, n)
	default:
		for k := o.First; k < o.First+n; k++ {
			count(r.due(o.Stream, k), 1)
		}
	}
}

// takeBefore removes the pages of intervals before i, or all of them.
func (j *consumedRecorder) takeBefore(i int, all bool, emit func(*page)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if i > j.rec.oldest {
		j.rec.takeBefore(i, emit)
	}
	if all {
		for _, p := range j.rec.open {
			emit(p)
		}
		j.rec.open, j.rec.last = nil, nil
	}
}
