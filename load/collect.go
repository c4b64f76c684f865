package load

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"carronade/measure"
)

// A collector adds the pages of all threads to the series and the phases. It belongs to
// one goroutine.
type collector struct {
	run    *Run
	total  []tally                      // per phase
	parts  []partTally                  // nil if the run has no parts
	groups []groupTally                 // nil if it has no groups
	acked  uint64                       // in closed intervals, with groups; without acks: sent
	open   map[int]map[int]*sum         // by interval and phase: not closed yet
	next   int                          // first interval not closed
	end    time.Duration                // of the measurement, once all threads have ended; Never before
	rows   map[string]*measure.Interval // newest row per phase name, delayed for corrections
	series *measure.Series
	merged []measure.Interval // rows of the series that the current interval completed
	texts  map[failureKey]*measure.Failure
	counts measure.Counts
	wire   uint64
	usage  measure.Usage
	spare  []*sum // for reuse
}

type tally struct {
	measure.Counts
	measure.Set
	statuses measure.Statuses
	wire     uint64 // see measure.Tally.SendWire
}

// A sum adds up one interval of one phase over all threads.
type sum struct {
	arrived uint64
	measure.Counts
	measure.Set
	statuses measure.Statuses
	classes  measure.Classes
}

func (r *Run) collect(firing *sync.WaitGroup) {
	c := &collector{
		run: r, total: make([]tally, len(r.phases)), open: map[int]map[int]*sum{},
		rows: map[string]*measure.Interval{}, series: measure.NewSeries(measure.DefaultSeries),
		texts: map[failureKey]*measure.Failure{}, parts: newPartTallies(r), groups: newGroupTallies(r), end: Never,
	}
	started := time.Now()
	ended := make(chan struct{})
	go func() { firing.Wait(); close(ended) }()
	for going := true; going; {
		select {
		case <-r.pages.signal:
		case <-ended:
			going = false
		}
		c.takePages(going)
	}
	c.end = c.measurementEnd(&Result{})
	if f := r.plan.Completed; f != nil {
		f()
		c.takePages(false)
	}
	c.closeRest(r.Now())
	freezes := r.watchdog.end()
	if !r.plan.Portable {
		addProcs(-len(r.threads))
	}
	r.result = c.finish(started)
	r.result.Freezes = freezes
	for i := range r.result.Parts {
		r.pages.addError(identities(&r.result.Parts[i].Tally))
	}
	for i := range r.result.Steps {
		r.pages.addError(identities(&r.result.Steps[i]))
	}
	r.pages.addError(identities(&r.result.Warmup))
	r.pages.addError(identities(&r.result.Measurement))
	r.pages.addError(c.checkSums(r.result.Intervals))
	r.err = errors.Join(r.pages.errs...)
	close(r.done)
}

// takePages adds new pages and, while the run goes on, closes complete intervals.
func (c *collector) takePages(going bool) {
	r := c.run
	pages, owners, upto := r.pages.take()
	for i, p := range pages {
		c.add(p)
		p.reset()
		select {
		case r.threads[owners[i]].rec.free <- p:
		default:
		}
	}
	upto = min(upto, int(r.Now()/r.plan.Interval)) // ended threads report a huge number
	for _, j := range r.consumed {
		j.takeBefore(upto, !going, func(p *page) {
			c.add(p)
			p.reset()
			select {
			case j.rec.free <- p:
			default:
			}
		})
	}
	for going && c.next < upto {
		c.closeInterval(c.next, time.Duration(c.next+1)*r.plan.Interval)
	}
}

// add adds a page to its phase and its interval.
func (c *collector) add(p *page) {
	t := &c.total[p.phase]
	t.Counts.Add(p.Counts)
	t.Set.Merge(&p.Set)
	t.statuses.Merge(p.statuses)
	c.counts.Add(p.Counts)
	c.addToPart(p)
	for k, f := range p.failures {
		g := c.texts[k]
		if g == nil {
			if len(c.texts) >= maxTexts {
				k.text = otherTexts
				g = c.texts[k]
			}
			if g == nil {
				g = &measure.Failure{Class: k.class, Text: k.text}
				c.texts[k] = g
			}
		}
		g.Events += f.Events
		g.Batches += f.Batches
	}
	i := max(p.interval, c.next)
	c.addToGroup(p, i)
	if c.open[i] == nil {
		c.open[i] = map[int]*sum{}
	}
	s := c.open[i][p.phase]
	if s == nil {
		s = c.newSum()
		c.open[i][p.phase] = s
	}
	s.arrived += p.arrived
	s.Counts.Add(p.Counts)
	s.Set.Merge(&p.Set)
	s.statuses.Merge(p.statuses)
	for k, f := range p.failures {
		s.classes.Add(k.class, f.Events, f.Batches)
	}
}

// newSum returns an empty sum, reused if possible.
func (c *collector) newSum() *sum {
	if n := len(c.spare); n > 0 {
		s := c.spare[n-1]
		c.spare = c.spare[:n-1]
		return s
	}
	return &sum{}
}

// closeInterval closes interval i, which ends at end.
func (c *collector) closeInterval(i int, end time.Duration) {
	r := c.run
	c.next = i + 1
	start := time.Duration(i) * r.plan.Interval
	usage := measure.Usage{}
	if r.plan.Usage != nil {
		usage = r.plan.Usage()
	}
	written, _ := r.target.Wire()
	wire := written - c.wire
	c.wire = written
	var inFlight int64
	for _, t := range r.threads {
		inFlight += t.published.Load()
	}
	now := r.phaseAt(max(start, end-1)) // the interval's usage belongs to the phase that it ends in
	if now == len(r.phases) {
		now-- // the drain belongs to the last phase, whose answers it waits for
	}
	sums := c.open[i]
	delete(c.open, i)
	phases := []int{now}
	for ph := range sums {
		if ph != now {
			phases = append(phases, ph)
		}
	}
	slices.Sort(phases)
	acked := uint64(0)
	for _, s := range sums {
		if acked += s.Acked; r.plan.Unanswered {
			acked += s.Sent - s.Counts.Failed
		}
	}
	read := c.closeGroups(i, acked, now >= r.firstMeasurement() && r.phaseAt(max(start, end-1)) < len(r.phases))
	var rows []measure.Interval
	if d := end - start; d > 0 {
		for ph := range c.total {
			c.total[ph].wire += uint64(float64(wire) * c.within(ph, start, end).Seconds() / d.Seconds())
		}
	}
	blank := measure.Interval{Start: start, End: end, InFlight: uint64(max(inFlight, 0)), Generator: usage, LagEvents: -1}
	if r.plan.Lag != nil {
		blank.LagEvents = r.plan.Lag(end)
	}
	combined := blank
	for _, ph := range phases {
		row := blank
		row.Phase, row.Within = r.rowName(ph), c.within(ph, start, end)
		s := sums[ph]
		if s != nil {
			row.Arrived = s.arrived
			row.Counts, row.Set, row.Statuses, row.Classes = s.Counts, s.Set, s.statuses, s.classes
			s.statuses, s.classes = nil, nil // the row keeps them
		}
		row.Groups = c.groupRows(read, ph, ph == now)
		if ph == now {
			row.WireBytes = wire
			c.total[ph].WireBytes += wire
			c.counts.WireBytes += wire
		} else {
			row.Generator = measure.Usage{}
		}
		if r.plan.Schedule != nil {
			row.Offered = r.dueWithin(ph, start, end)
			c.counts.Offered += row.Offered
		}
		if len(phases) == 1 {
			combined = row
		} else {
			combined.Phase = row.Phase
			combined.Within += row.Within
			combined.Arrived += row.Arrived
			combined.Groups = measure.JoinGroups(combined.Groups, row.Groups)
			combined.Counts.Add(row.Counts)
			combined.Set.Merge(&row.Set)
			combined.Statuses.Merge(row.Statuses)
			combined.Classes.Merge(row.Classes)
		}
		kept := c.delayRow(row)
		rows = append(rows, *kept)
	}
	if now >= r.firstMeasurement() {
		c.usage = c.usage.Join(usage)
	}
	if r.plan.Watch != nil && start <= r.Now() {
		c.watch(i, combined, rows, end)
	}
	for _, s := range sums { // combined may have shared their histograms until here
		s.Counts, s.arrived = measure.Counts{}, 0
		s.Set.Each(func(_ string, h **measure.Histogram) {
			if *h != nil {
				(*h).Reset()
			}
		})
		c.spare = append(c.spare, s)
	}
}

// within returns how much of the time from start to end lies in a phase, as far as the ends of phases are
// known: of the last one, when the threads have ended.
func (c *collector) within(ph int, start, end time.Duration) time.Duration {
	r := c.run
	from := time.Duration(0)
	switch first := r.firstMeasurement(); {
	case ph == first:
		from = time.Duration(r.measurementAt.Load())
	case ph > first:
		from = r.phases[ph].start
	}
	return max(0, min(end, r.phaseEnd(ph), c.end)-max(start, from))
}

// delayRow delays a row until the next one of its phase, because what becomes known
// only at the end of a run (events that were never sent) belongs to the last row.
func (c *collector) delayRow(row measure.Interval) *measure.Interval {
	row.Each(func(_ string, h **measure.Histogram) { *h = (*h).Compact() })
	if old := c.rows[row.Phase]; old != nil {
		c.series.Add(*old)
		if c.run.plan.Watch != nil {
			c.merged = append(c.merged, c.series.Changed()...)
		}
	}
	c.rows[row.Phase] = &row
	return &row
}

// dueWithin returns how many events of a phase are due from start to before end, and
// fired here.
func (r *Run) dueWithin(ph int, start, end time.Duration) uint64 {
	p := &r.phases[ph]
	stop := time.Duration(min(r.stopAt.Load(), r.byteLimitAt.Load()))
	return r.ownDueBefore(p, min(end, stop)) - r.ownDueBefore(p, min(start, stop))
}

// rowName returns the phase name of an interval: steps are part of the measurement.
func (r *Run) rowName(ph int) string {
	if r.phases[ph].warm {
		return measure.WarmUp
	}
	return measure.Measurement
}

// watch passes interval i to the plan's Watch.
func (c *collector) watch(i int, iv measure.Interval, rows []measure.Interval, at time.Duration) {
	r := c.run
	s := Snapshot{At: at, Number: i, Interval: iv, Rows: rows, Merged: c.merged, Total: c.counts, Kept: c.series.Bytes(), Unanswered: r.plan.Unanswered, Left: Never, Endless: r.plan.Endless()}
	ph := r.phaseAt(max(0, at-1)) // the phase that the interval ended in
	switch {
	case ph == len(r.phases):
		s.Phase, s.Left = measure.Drain, 0
	case r.phases[ph].warm:
		s.Phase = measure.WarmUp
	default:
		s.Phase = measure.Measurement
	}
	if end := time.Duration(r.measurementEnd.Load()); s.Phase != measure.Drain && end != Never {
		s.Left = max(0, end-at)
	}
	for i := range r.plan.Groups {
		s.Groups = append(s.Groups, r.plan.Groups[i].Name)
	}
	s.Freezes, s.Frozen = r.watchdog.endedWithin(iv.Start, iv.End)
	c.merged = nil
	r.plan.Watch(s)
}

// closeRest closes the open intervals when the run has ended.
func (c *collector) closeRest(now time.Duration) {
	now = max(now, c.end) // the threads end when nothing more is due, and the measurement may last longer
	for {
		end := time.Duration(c.next+1) * c.run.plan.Interval
		if end >= now {
			c.closeInterval(c.next, now)
			break
		}
		c.closeInterval(c.next, end)
	}
	for len(c.open) > 0 { // recorded after the time of the last boundary was taken
		c.closeInterval(c.next, now)
	}
}

// checkSums checks that the intervals add up to the phases.
func (c *collector) checkSums(intervals []measure.Interval) error {
	want := measure.Counts{}
	for i := range c.total {
		want.Add(c.total[i].Counts)
	}
	got := measure.Counts{}
	for i := range intervals {
		got.Add(intervals[i].Counts)
	}
	if got != want {
		return fmt.Errorf("the intervals add up to %+v, the phases to %+v", got, want)
	}
	return c.checkArrived(intervals)
}

// checkArrived checks that what arrived in the intervals of a phase adds up.
func (c *collector) checkArrived(intervals []measure.Interval) error {
	left := map[string]uint64{}
	for i := range c.run.phases {
		for _, t := range c.run.threads {
			t.eachOf(i, func(p *phaseCount) { left[c.run.rowName(i)] += p.arrived })
		}
	}
	for i := range intervals {
		left[intervals[i].Phase] -= intervals[i].Arrived
	}
	for name, n := range left {
		if n != 0 {
			return fmt.Errorf("%s: %d more answers arrived in the phase than in its intervals", name, int64(n)) //nolint:gosec // negative if fewer
		}
	}
	return nil
}
