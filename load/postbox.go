package load

import "sync"

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
