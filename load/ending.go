package load

import (
	"fmt"
	"time"

	"carronade/measure"
)

// fireRemaining fires incomplete batches when the run is stopped, as a client does when
// it is closed: their events are due, and no later events will fill them. Events that
// the in-flight bound holds back stay unsent under either overload policy, because the
// system caused it.
func (t *thread) fireRemaining(now time.Duration) {
	r := t.run
	stop := time.Duration(r.stopAt.Load())
	if stop > time.Duration(r.byteLimitAt.Load()) || r.reason.Load() != Interrupted {
		t.until = now // nothing remains, so later calls are skipped
		return
	}
	t.until = stop
	due := r.plan.Schedule.Count(stop)
	tried := make(map[*stream]uint64) // each stream's first event when it was last served
	for moved := true; moved; {
		moved = false
		asleep := t.asleep
		t.asleep = nil
		for i := range asleep {
			s := asleep[i].stream
			// A stream that returns with the same first event found no room. Only
			// answers make room, and they are handled later.
			at, again := tried[s]
			if s.next >= min(r.partitioner.Before(s.id, due), s.end) || again && at == s.next {
				t.asleep.push(s)
				continue
			}
			tried[s] = s.next
			t.enqueue(s, now)
			moved = true
		}
		if moved {
			t.serve(now)
		}
	}
}

// finish closes the lanes, accounts for the batches that they complete, and counts the
// events that were due and never sent.
func (t *thread) finish() {
	for _, ls := range t.lanes {
		var out []Outcome // batches that failed and are not retried
		for _, s := range ls.refire {
			out = append(out, Outcome{Batch: s, Lane: int32(ls.ID()), Sent: s.FirstSent, Done: t.run.Now(), Failed: s.Events, Class: Canceled, Text: "the run ended before it was sent again", Place: -1})
			t.complete(&out[len(out)-1], t.run.Now())
		}
		t.notify(out)
		ls.refire = nil
		if err := ls.Close(); err != nil {
			t.run.pages.addError(fmt.Errorf("close lane %d: %w", ls.ID(), err))
		}
	}
	now := t.run.Now()
	t.takeAnswers(now)
	for _, ls := range t.lanes {
		t.setFull(ls, false)
		t.unblock(ls, now)
	}
	if t.batchesInFlight != 0 {
		t.run.pages.addError(fmt.Errorf("thread %d: %d batches were never completed", t.id, t.batchesInFlight))
	}
	if t.scheduled() {
		t.countUnsent(now)
	}
	t.rec.takeBefore(1<<62, func(p *page) { t.run.pages.put(t.id, p) })
	t.run.pages.markEnded(t.id)
}

// countUnsent counts the events that were due and never sent.
func (t *thread) countUnsent(now time.Duration) {
	r := t.run
	stop := time.Duration(min(r.stopAt.Load(), r.byteLimitAt.Load()))
	due := uint64(noEnd)
	if stop != Never {
		due = r.plan.Schedule.Count(stop)
	}
	for _, s := range t.streams {
		for i := range r.phases {
			ph := &r.phases[i]
			from, to := r.partitioner.Before(s.id, ph.from), r.partitioner.Before(s.id, min(ph.to, max(due, ph.from)))
			to = max(to, min(s.next, r.partitioner.Before(s.id, ph.to)))
			t.offered[i] += to - from
			own := t.account(s.part)
			if own != nil {
				own.offered[i] += to - from
			}
			k := max(from, s.next)
			if k >= to {
				continue
			}
			t.unsent[i] += to - k
			if own != nil {
				own.unsent[i] += to - k
			}
			pg := t.rec.at(now, i, s.part)
			var ages []*measure.Histogram
			if !r.plan.Unanswered {
				ages = append(ages, hist(&pg.Censored))
			}
			if r.plan.Returns {
				ages = append(ages, hist(&pg.UnreadAges))
			}
			if len(ages) == 0 {
				continue
			}
			t.unsentGroups(s, k, to, func(first, last time.Duration, events uint64) {
				for _, h := range ages {
					if events == 1 {
						h.Record(now - first)
					} else {
						h.RecordSpan(now-first, now-last, events)
					}
				}
				if f := r.plan.Unsent; f != nil && !r.plan.Unanswered {
					f(t.id, s.id, first, last, events)
				}
			})
		}
	}
}

// mostGroups limits the groups that the unsent events of a stream form.
const mostGroups = 4096

// unsentGroups calls f with the due times of the first and the last event of groups of the events
// k..to-1 of a stream, which were never sent. A fast schedule and a slow system leave billions of them, so
// there are at most mostGroups groups: within one, the due times are taken to be even, which is exact at a
// constant rate.
func (t *thread) unsentGroups(s *stream, k, to uint64, f func(first, last time.Duration, events uint64)) {
	for per := max(1, (to-k+mostGroups-1)/mostGroups); k < to; {
		n := min(per, to-k)
		f(t.due(s, k), t.due(s, k+n-1), n)
		k += n
	}
}
