package load

import (
	"time"

	"carronade/measure"
)

// A Passage is when events of a batch passed the points between which their times lie. Response, service
// and end-to-end time, their lower bounds and the send delay come from Since and Service, for everything that
// sends or reads.
type Passage struct {
	Ready   time.Duration // the batch was full, or its linger was over
	Free    time.Duration // the in-flight bound had room for it
	Sent    time.Duration // the first byte was written, at any attempt; below 0: none was
	Done    time.Duration // the answer was read, or the events were
	Arrived time.Duration // the earliest moment at which what came at Done can have come
	Late    time.Duration // how long the lateness of other events of the run may have delayed these
}

// An Elapsed is a time of an event, and what of it the generator may have added. Only a Passage makes one.
type Elapsed struct{ took, least, delay, late time.Duration }

// Since returns the time to Done from when an event was due: the response time, or, of events that were
// read, the end-to-end time. Below 0, the event had no due time: it counts from when it was sent.
func (p *Passage) Since(due time.Duration) Elapsed {
	e := Elapsed{late: p.Late}
	if due < 0 {
		due = max(0, p.Sent)
	} else {
		e.delay = max(0, p.Sent-max(due, p.Ready, p.Free))
	}
	e.took, e.least = max(0, p.Done-due), max(0, min(p.Done, max(p.Arrived, p.Sent))-due)
	return e
}

// Service returns the time of the batch from its first byte to its answer. A batch that waited for room met a
// system that was as full as the bound allows, with or without a burst from the generator.
func (p *Passage) Service() Elapsed {
	e := p.Since(-1)
	if p.Free > p.Ready {
		e.late = 0
	}
	return e
}

// Took is the time as it was measured.
func (e Elapsed) Took() time.Duration { return e.took }

// Delay is the send delay: the generator's own delay in sending the event. It is a part of the time.
func (e Elapsed) Delay() time.Duration { return e.delay }

// of sets when a batch passed its points. What came at done arrived no earlier than another time.
func (p *Passage) of(o *Outcome, done, arrived time.Duration) {
	// Field by field: a composite literal would be built separately and copied.
	p.Ready, p.Free, p.Sent, p.Done, p.Arrived, p.Late = o.Ready, o.Free, o.SentFirst(), done, arrived, o.Late
}

// ReadAt is the passage of a batch that was read at a time and arrived no earlier than another. frozen returns
// how much of a span the reader did not run: it then requests its next data later, too, so all data in transit may
// be late by as much.
func (o *Outcome) ReadAt(at, earliest time.Duration, frozen func(from, to time.Duration) time.Duration) (p Passage) {
	p.of(o, at, min(earliest, at-frozen(o.SentFirst(), at)))
	return p
}

// Age returns how long ago, at a time, an event was due that has not been read (below 0: it had no due time, and
// counts from when it was sent). Nothing arrives before it is sent.
func (o *Outcome) Age(due, at time.Duration) time.Duration {
	var p Passage
	p.of(o, max(at, o.SentFirst()), at)
	return p.Since(due).took
}

// SentFirst is when the first byte of the batch was written, at any attempt; -1 if none was.
func (o *Outcome) SentFirst() time.Duration {
	if o.Attempt > 0 && o.FirstSent >= 0 {
		return o.FirstSent
	}
	return o.Sent
}

// lowerBounds are the lower bounds of one phase's times, without what the generator may
// have added.
type lowerBounds struct{ response, service, endToEnd LowerBound }

// A LowerBound is the histogram of the lower bounds of one kind of time: without what the generator may
// have added. Its zero value is empty.
type LowerBound struct{ h *measure.Histogram }

// Record counts n equal times without what the generator added: its own delay, or, for
// disturbed events, the greatest lateness at that time.
//
// What remains of a disturbed event may say little about the system. It counts nevertheless: to leave
// out only the short ones, as if they were like the others, makes the median of what is left too long.
func (l *LowerBound) Record(e Elapsed, n uint64) {
	recordN(&l.h, max(0, e.least-max(e.delay, e.late)), n)
}

// Bound returns the lower bounds of what was measured; nil without any.
func (l *LowerBound) Bound() *measure.Histogram { return l.h }

// compact frees the memory of empty cells.
func (l *lowerBounds) compact() {
	for _, w := range []*LowerBound{&l.response, &l.service, &l.endToEnd} {
		w.h = w.h.Compact()
	}
}

// merge adds what another thread recorded.
func (l *lowerBounds) merge(o *lowerBounds) {
	for _, w := range [][2]*LowerBound{{&l.response, &o.response}, {&l.service, &o.service}, {&l.endToEnd, &o.endToEnd}} {
		if w[1].h != nil { // else it may be a time that does not exist
			hist(&w[0].h).Merge(w[1].h)
		}
	}
}

// bound returns the lower bounds.
func (l *lowerBounds) bound() *measure.Lower {
	return &measure.Lower{Response: l.response.h, Service: l.service.h, EndToEnd: l.endToEnd.h}
}
