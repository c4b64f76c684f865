package load

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"carronade/measure"
)

// finish makes the result of a run after its threads have ended.
func (c *collector) finish(started time.Time) *Result {
	r := c.run
	now := r.Now()
	res := &Result{Started: started, Ended: time.Now(), Mode: r.mode, Unanswered: r.plan.Unanswered, Usage: c.usage, Classes: map[string]uint64{}}
	res.Threads, res.MostThreads, res.Clients = len(r.threads), max(r.plan.Threads, 0), r.ownClients()
	end := c.measurementEnd(res)
	first := r.firstMeasurement()
	measurementStart := min(time.Duration(r.measurementAt.Load()), end)

	for i := range r.phases {
		c.addUnsent(i)
	}
	if first == 1 {
		res.Warmup = c.tally(0, measure.WarmUp, 0, min(measurementStart, end))
	}
	measurement := measure.Tally{Name: measure.Measurement, Rate: r.targetRate(measurementStart, end, res.Stopped), Start: measurementStart, End: end}
	for i := first; i < len(r.phases); i++ {
		ph := &r.phases[i]
		t := c.tally(i, ph.name, min(ph.start, end), min(ph.end, end))
		if i == first {
			t.Start = measurementStart
		}
		addEvents(&measurement, &t)
		measurement.InFlightPeak = max(measurement.InFlightPeak, t.InFlightPeak)
		if len(r.phases)-first > 1 && (t.Offered > 0 || t.Length() > 0) {
			res.Steps = append(res.Steps, t)
			measurement.Rate = 0
		}
	}
	if measurement.Length() > 0 {
		area := 0.0
		for _, t := range r.threads {
			for i := first; i < len(r.phases); i++ {
				area += t.phases[i].area
			}
		}
		measurement.InFlight = area / float64(measurement.Length())
	}
	res.Measurement = measurement
	res.Drain = measure.Tally{Name: measure.Drain, Start: end, End: max(now, end)}
	for _, t := range r.threads {
		t.eachOf(len(r.phases), func(p *phaseCount) { p.addTo(&res.Drain) })
	}
	for _, name := range []string{measure.WarmUp, measure.Measurement} {
		if c.run.plan.Schedule != nil {
			c.reconcile(name)
		} else if row := c.rows[name]; row != nil {
			c.series.AddLast(*row)
		}
	}
	res.Intervals = c.series.Intervals()
	slices.SortStableFunc(res.Intervals, func(a, b measure.Interval) int { return cmp.Compare(a.Start, b.Start) })
	res.Whole = res.Stopped == Interrupted && r.plan.Endless() && measurement.Length() > 0 && r.abortAt.Load() == int64(Never)
	res.Parts = c.partTallies(measurement.Start, end)
	acked := res.Warmup.Arrived + measurement.Arrived
	res.Groups = c.groupResults(measure.Tally{Start: measurement.Start, End: end}, acked)
	c.failures(res)
	c.generatorLoad(res)
	if r.plan.Portion.Whole() || r.plan.Schedule == nil { // with a schedule, the limit is on the events of all generators
		res.Missing = r.plan.Measurement.Missing(measurement.Sent, res.Stopped)
	}
	_, res.WireRead = r.target.Wire()
	return res
}

// targetRate is the mean rate that the schedule asks for in the measurement; 0 without a schedule. A number of
// events takes until the next one would be due, also if they were all due before, or together.
func (r *Run) targetRate(from, to time.Duration, stopped Reason) float64 {
	s := r.plan.Schedule
	if s == nil {
		return 0
	}
	if stopped == ByEvents {
		if next := s.Due(r.phases[len(r.phases)-1].to); next != Never {
			to = max(to, next)
		}
	}
	const samples = 1000
	first, sum, same := s.Rate(from), 0.0, true
	for i := range samples {
		rate := s.Rate(from + time.Duration((float64(i)+0.5)/samples*float64(to-from)))
		same = same && rate == first
		sum += rate
	}
	if same {
		return first
	}
	return sum / samples
}

// Missing returns how many of the requested events a measurement lacks, given why it
// ended.
func (l *Limits) Missing(events uint64, why Reason) uint64 {
	switch {
	case events >= l.Events:
		return 0
	case l.AtMost && (why == ByTime || why == BySchedule || why == ByBytes):
		return 0
	}
	return l.Events - events
}

// measurementEnd finds when and why the measurement ended. If an interruption cut the
// drain short, it is reported as the reason: the report is partial then.
func (c *collector) measurementEnd(res *Result) time.Duration {
	end := c.measurementEnded(res)
	if stop := time.Duration(c.run.stopAt.Load()); stop != Never && end < stop && c.run.reason.Load() == Interrupted {
		res.Stopped = Interrupted
	}
	return end
}

func (c *collector) measurementEnded(res *Result) time.Duration {
	r := c.run
	stop, end, spent := time.Duration(r.stopAt.Load()), time.Duration(r.measurementEnd.Load()), time.Duration(r.byteLimitAt.Load())
	last := min(end, max(time.Duration(r.lastDone.Load()), min(time.Duration(r.measurementAt.Load()), r.Now())))
	switch {
	case time.Duration(r.lastFiredAt.Load()) < min(stop, end, spent):
		if res.Stopped = ByEvents; r.feedEnded.Load() {
			res.Stopped = ByFeed
		}
		return min(last, stop)
	case stop < min(end, spent):
		res.Stopped, _ = r.reason.Load().(Reason)
		return stop
	case spent < end:
		res.Stopped = ByBytes
		return last
	case end != Never:
		res.Stopped = ByTime
		if s := r.plan.Schedule; s != nil && s.End() == end && (r.plan.Measurement.Time == 0 || end < r.plan.WarmupTime+r.plan.Measurement.Time) {
			res.Stopped = BySchedule
		}
		return end
	case r.plan.Measurement.Events > 0:
		res.Stopped = ByEvents
	default:
		res.Stopped = BySchedule
	}
	return last
}

// addUnsent adds the counts that exist only at the end: events due and never sent, and, if a
// schedule was cut short, how many were due by then.
func (c *collector) addUnsent(i int) {
	r := c.run
	if r.plan.Schedule == nil {
		return
	}
	t := &c.total[i]
	var offered, unsent uint64
	for _, th := range r.threads {
		th.eachOf(i, func(p *phaseCount) {
			offered += p.offered
			unsent += p.unsent
		})
	}
	t.Unsent += unsent
	if min(r.stopAt.Load(), r.byteLimitAt.Load()) == int64(Never) && r.abortAt.Load() == int64(Never) {
		// Count independently from the schedule, so that the first identity is a real check.
		offered = r.ownBefore(r.phases[i].to) - r.ownBefore(r.phases[i].from)
	}
	t.Offered = offered
}

// reconcile adds what became known only at the end to the newest row of a phase name,
// so that rows add up to their phases.
func (c *collector) reconcile(name string) {
	var want, got measure.Counts
	for i := range c.total {
		if c.run.rowName(i) == name {
			want.Offered += c.total[i].Offered
			want.Unsent += c.total[i].Unsent
		}
	}
	row := c.rows[name]
	if row == nil {
		return
	}
	got.Offered, got.Unsent = row.Offered, row.Unsent
	for _, iv := range c.series.Intervals() {
		if iv.Phase == name {
			got.Offered += iv.Offered
			got.Unsent += iv.Unsent
		}
	}
	row.Offered += want.Offered - got.Offered // unsigned wrap-around is intended: the difference may be negative
	row.Unsent += want.Unsent - got.Unsent
	c.series.AddLast(*row)
}

func (c *collector) tally(i int, name string, start, end time.Duration) measure.Tally {
	t := measure.Tally{Name: name, Rate: c.run.phases[i].rate, Start: start, End: end, SendWire: c.total[i].wire, Counts: c.total[i].Counts, Set: c.total[i].Set, Statuses: c.total[i].statuses}
	var area float64
	var lower lowerBounds
	for _, j := range c.run.consumed {
		lower.merge(&j.lower[i])
	}
	for _, th := range c.run.threads {
		lower.merge(&th.lower[i])
		th.eachOf(i, func(p *phaseCount) { p.addTo(&t) })
		area += th.phases[i].area
		t.InFlightPeak += uint64(th.phases[i].most)
	}
	t.Lower = *lower.bound()
	if t.Length() > 0 {
		t.InFlight = area / float64(t.Length())
	}
	return t
}

func (c *collector) failures(res *Result) {
	for _, f := range c.texts {
		res.Failures = append(res.Failures, *f)
		res.Classes[f.Class] += f.Events
	}
	sortFailures(res.Failures)
}

// generatorLoad adds how busy the generator was and how long it found the bound full.
func (c *collector) generatorLoad(res *Result) {
	r := c.run
	length := res.Measurement.Length()
	if length <= 0 {
		return
	}
	var full, fullest time.Duration
	lanes := 0
	for _, t := range r.threads {
		idle := t.idleFor + max(0, res.Measurement.End-max(t.doneAt, res.Measurement.Start)) // after its work was done
		res.Busy = max(res.Busy, 1-min(1, idle.Seconds()/length.Seconds()))
		for _, ls := range t.lanes {
			full += ls.blockedFor
			fullest = max(fullest, ls.blockedFor)
			lanes++
		}
	}
	if lanes > 0 {
		after := max(0, res.Measurement.End-time.Duration(r.lastFiredAt.Load()))
		full += time.Duration(lanes) * after
		res.Full = min(1, full.Seconds()/(float64(lanes)*length.Seconds()))
		res.Fullest = min(1, (fullest+after).Seconds()/length.Seconds())
	}
	r.noteOpenGap()
	res.Stall = r.stalls
	res.Stall.Longest = time.Duration(r.longest.Load())
	res.Stall.LongestAt = r.longestAt
	res.Stall.Share = min(1, float64(r.stalled)/float64(length))
}

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
	t.published.Store(t.inFlight)
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
			p := &t.of(s.part).phases[i]
			p.offered += to - from
			k := max(from, s.next)
			if k >= to {
				continue
			}
			p.unsent += to - k
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
