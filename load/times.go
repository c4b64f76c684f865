package load

import (
	"time"

	"carronade/measure"
)

// recordTimes records both clocks of a batch: the response time of each event from its
// due time, and the service time of the batch from its first byte. It also records
// lower bounds of both, without the delay that the generator itself may have added, and notes in the outcome
// what the lower bound of its end-to-end times needs.
func (t *thread) recordTimes(pg *page, o *Outcome, arrived time.Duration) {
	sent := o.firstSent()
	written := o.Sent >= 0
	batches := uint64(o.count())
	lower := &t.lower[o.Phase]
	if written { // after sent was noted, the process may have frozen, or a library waited, before the write
		unwritten := o.Unwritten
		if t.run.mode == FullSpeed {
			unwritten = 0 // a library always has more to write than it can: its queue is the load
		}
		arrived = max(sent, arrived-max(unwritten, t.run.watchdog.within(sent, arrived)))
	}
	disturbed := t.run.disturbed.list.Load()
	if disturbed.after(o.DueFirst) {
		disturbed = nil
	}
	if o.Late = 0; disturbed != nil && o.DueFirst >= 0 {
		o.Late = max(disturbed.at(o.DueFirst), disturbed.at(o.DueLast))
	}
	if written && !t.run.plan.Unanswered {
		switch {
		case o.Acked > 0:
			pg.Answered += batches
			recordN(&pg.Service, o.Done-sent, batches)
			late := o.Late
			// A batch that waited for room met a system that was as full as the bound
			// allows, with or without a burst from the generator.
			if o.Free > o.Ready {
				late = 0
			}
			lower.service.Record(arrived-sent, 0, late, batches)
		case o.Failed > 0:
			pg.Answered += batches
			recordN(&pg.FailedService, o.Done-sent, batches)
		}
	}
	if o.DueFirst < 0 {
		return // the events had no due time
	}
	if o.Free > o.Ready { // the answer that made room may have waited while the process was frozen
		o.Free = max(o.Ready, t.run.watchdog.earliest(o.Free))
	}
	if written {
		hist(&pg.Queueing).Record(max(0, o.Free-o.Ready))
	}
	acks, unknowns := uint64(o.Acked), uint64(o.Unknown)
	if t.run.plan.Unanswered {
		unknowns = 0 // no answer was expected
	}
	n := uint64(o.Events)
	if o.DueFirst == o.DueLast {
		delay := o.sendDelay(o.DueFirst)
		if written {
			hist(&pg.Batching).RecordN(max(0, o.Ready-o.DueFirst), n)
			recordN(&pg.SendDelay, delay, n)
		}
		if acks > 0 {
			recordN(&pg.Response, o.Done-o.DueFirst, acks)
			lower.response.Record(arrived-o.DueFirst, delay, o.Late, acks)
		}
		if unknowns > 0 {
			hist(&pg.Censored).RecordN(o.Done-o.DueFirst, unknowns)
		}
		return
	}
	// Each event counts from its own due time. Spreading events evenly between the
	// first and the last is correct only at a constant rate, and costs more if a batch
	// has fewer events than the histogram has cells in that span.
	batching, delays := hist(&pg.Batching), hist(&pg.SendDelay)
	for i := range n {
		due := t.run.due(o.Stream, o.First+i)
		delay := o.sendDelay(due)
		if written {
			batching.Record(max(0, o.Ready-due))
			delays.Record(delay)
		}
		if i < acks {
			hist(&pg.Response).Record(o.Done - due)
			lower.response.Record(arrived-due, delay, disturbed.at(due), 1)
		}
		if i >= n-unknowns {
			hist(&pg.Censored).Record(o.Done - due)
		}
	}
}

// lowerBounds are the lower bounds of one phase's times, without what the generator may
// have added.
type lowerBounds struct{ response, service, endToEnd LowerBound }

// A LowerBound is the histogram of the lower bounds of one kind of time: without what the generator may
// have added. Its zero value is empty.
type LowerBound struct {
	h       *measure.Histogram
	leftOut uint64 // number of values that were left out

	median   time.Duration // of h when it had medianOf values
	medianOf uint64
}

// Record counts n equal times without what the generator added: its own delay, or, for
// disturbed events, the greatest lateness at that time. A disturbed time that is then
// below the median says nothing about the system. It is left out, as if it were like the
// others, unless more values were left out than counted.
//
// A stall of the system raises the mean far above what most events take, so with the mean
// the shorter times of the stall itself would be left out.
func (l *LowerBound) Record(d, delay, late time.Duration, n uint64) {
	d = max(0, d-max(delay, late))
	if late > 0 && l.leftOut < l.h.Count() && d <= l.recentMedian() {
		l.leftOut += n
		return
	}
	recordN(&l.h, d, n)
}

// recentMedian returns the median of h, or the one from when h had at least 8/9 of its
// values: to find it takes a pass over the histogram.
func (l *LowerBound) recentMedian() time.Duration {
	if n := l.h.Count(); l.medianOf == 0 || n > l.medianOf+l.medianOf/8 {
		l.median, l.medianOf = l.h.Percentile(50), n
	}
	return l.median
}

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
		w[0].leftOut += w[1].leftOut
	}
}

// bound returns the lower bounds of what was measured.
func (l *lowerBounds) bound(s *measure.Set) *measure.Lower {
	return &measure.Lower{Response: l.response.Bound(s.Response), Service: l.service.Bound(s.Service), EndToEnd: l.endToEnd.Bound(s.EndToEnd)}
}

// Bound returns the lower bound of measured times; nil without any. The values that were left out were
// below the median. If they are many, as while the system stalls, leaving them out raises
// percentiles above the measured ones, so they also count as the median. No bound is
// above what was measured.
func (l *LowerBound) Bound(measured *measure.Histogram) *measure.Histogram {
	if l.leftOut == 0 || l.h.Count() == 0 {
		return l.h
	}
	all := l.h.Clone()
	all.RecordN(all.Percentile(50), l.leftOut)
	return measure.LeastOf(all, l.h, measured)
}
