package load

import (
	"sync"
	"time"

	"carronade/measure"
)

// A page contains what one thread counted and timed in one interval for the events of one
// phase and one part of the run. Only its thread writes to it, until it hands the page to the collector after
// the interval. The collector returns it empty.
type page struct {
	interval int
	phase    int
	part     int
	group    int    // of a reader, from 1; 0: of a thread, or of the only reader
	arrived  uint64 // answers that came while the run was in the phase
	measure.Counts
	measure.Set
	statuses measure.Statuses
	failures map[failureKey]*measure.Failure
	read     uint64 // of a group: consumed events that were acked
}

type failureKey struct{ class, text string }

func (p *page) reset() {
	p.Counts, p.arrived, p.read = measure.Counts{}, 0, 0
	p.statuses = p.statuses[:0]
	p.Set.Each(func(_ string, h **measure.Histogram) {
		if *h != nil {
			(*h).Reset()
		}
	})
	clear(p.failures)
}

// hist returns a histogram of the page, made on first use: 190 KB that a run without
// failures, for example, never needs for them.
func hist(h **measure.Histogram) *measure.Histogram {
	if *h == nil {
		*h = measure.NewHistogram()
	}
	return *h
}

// recordN counts n equal times; n is usually 1.
func recordN(h **measure.Histogram, d time.Duration, n uint64) {
	if n == 1 {
		hist(h).Record(d)
		return
	}
	hist(h).RecordN(d, n)
}

// A recorder contains the open pages of a thread.
type recorder struct {
	length time.Duration // of an interval
	group  int           // of its pages
	open   []*page
	last   *page         // the one of the call before, as nearly always; nil: none
	from   time.Duration // its interval, without a division
	to     time.Duration
	oldest int // pages of earlier intervals have been handed over
	free   chan *page
}

// at returns the page for something that happened at t to events of a phase and a part. If its
// interval has been handed over already, it counts in the oldest open one.
func (r *recorder) at(t time.Duration, phase, part int) *page {
	if p := r.last; p != nil && t >= r.from && t < r.to && p.phase == phase && p.part == part {
		return p
	}
	i := max(int(t/r.length), r.oldest)
	r.from, r.to = time.Duration(i)*r.length, time.Duration(i+1)*r.length
	for _, p := range r.open {
		if p.interval == i && p.phase == phase && p.part == part {
			r.last = p
			return p
		}
	}
	var p *page
	select {
	case p = <-r.free:
	default:
		p = &page{failures: map[failureKey]*measure.Failure{}}
	}
	p.interval, p.phase, p.part, p.group = i, phase, part, r.group
	r.open = append(r.open, p)
	r.last = p
	return p
}

// takeBefore removes the pages of intervals before i and passes them to emit.
func (r *recorder) takeBefore(i int, emit func(*page)) {
	keep := r.open[:0]
	for _, p := range r.open {
		if p.interval < i {
			emit(p)
		} else {
			keep = append(keep, p)
		}
	}
	clear(r.open[len(keep):])
	r.open, r.oldest, r.last = keep, i, nil
}

// maxTexts limits the distinct failure texts; further ones are counted by class only.
const maxTexts = 32

func (p *page) fail(class Class, text string, events int32, batches int) {
	k := failureKey{class.String(), text}
	f := p.failures[k]
	if f == nil {
		if len(p.failures) >= maxTexts {
			k.text = otherTexts
			if f = p.failures[k]; f == nil {
				f = &measure.Failure{Class: k.class, Text: k.text}
				p.failures[k] = f
			}
		} else {
			f = &measure.Failure{Class: k.class, Text: k.text}
			p.failures[k] = f
		}
	}
	f.Events += uint64(events)
	f.Batches += uint64(batches)
}

const otherTexts = "(other texts)"

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
