package load

import (
	"sync"
	"time"

	"carronade/measure"
)

// A Group is one of several readers of what a run sends, such as a consumer group. Each of them
// reads every event.
type Group struct {
	Name string
	// Unassigned returns how long the group had no assignment so far, the mean over its members;
	// nil: it always has one.
	Unassigned func() time.Duration
}

// A GroupResult is what a group read of the measurement's events. Of the Tally it has what only
// reading shows: Consumed, Unread, the times until they were read, and in Arrived what it read
// between Start and End, of any phase.
type GroupResult struct {
	measure.Tally
	Backlog     uint64        // events acked and not read, at the end of the measurement
	MostBacklog uint64        // the same, the maximum over the ends of the measurement's intervals
	Unassigned  time.Duration // without an assignment, until the end of the run, the mean over the members
}

// A consumedRecorder records what only the consumption of an event shows, for one reader. Its
// goroutines are few and deliver batches, so one lock is enough.
type consumedRecorder struct {
	mu      sync.Mutex
	rec     recorder
	lower   []lowerBounds  // per phase of the events
	arrived []groupArrived // of a group, per phase of the run, and in the drain; nil: it is the only reader
}

// groupArrived is what a group read in a phase of the run, whichever phase it was sent in.
type groupArrived struct{ events, acked, bytes uint64 }

func newConsumedRecorder(r *Run, group int) *consumedRecorder {
	j := &consumedRecorder{lower: make([]lowerBounds, len(r.phases))}
	j.rec = recorder{length: r.plan.Interval, group: group, free: make(chan *page, 4)}
	if group > 0 {
		j.arrived = make([]groupArrived, len(r.phases)+1)
	}
	return j
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

// Consumed records that the events of a batch were consumed at a time and arrived no
// earlier than another: the end-to-end time of a round trip, from due (or, if nothing
// was due, from sent) to consumed. group is the reader's number in the plan's Groups; 0 if it is the only
// reader. It may be called until the plan's Completed returns, from any goroutine.
func (r *Run) Consumed(group int, o *Outcome, at, earliest time.Duration) {
	j := r.consumed[group]
	j.mu.Lock()
	defer j.mu.Unlock()
	pg := j.rec.at(at, int(o.Phase), r.partOf(o.Stream))
	pg.Consumed += uint64(o.Events)
	h, lower := hist(&pg.EndToEnd), &j.lower[o.Phase].endToEnd
	p := o.ReadAt(at, min(earliest, r.watchdog.earliest(at)), r.watchdog.within)
	r.eachDue(o, 0, o.Events, func(due time.Duration, n uint64) {
		e := p.Since(due)
		h.RecordN(e.took, n)
		lower.Record(e, n)
	})
	if j.arrived == nil {
		return
	}
	acked := uint64(min(o.Acked, o.Events))
	if acked > 0 {
		recordN(&pg.AckedToRead, max(0, at-o.Done), acked)
	}
	if r.plan.Unanswered {
		acked = uint64(o.Events)
	}
	pg.read += acked
	in := &j.arrived[r.phaseAt(at)]
	in.events += uint64(o.Events)
	in.acked += acked
	in.bytes += uint64(o.Bytes)
}

// Unread records that the events of a batch that were acked, or may have been taken, were not read by a reader
// until a time: their end-to-end times are at least their ages then. What was certainly refused has none. It
// may be called when Consumed may be.
func (r *Run) Unread(group int, o *Outcome, at time.Duration) {
	acked, unknown := min(o.Acked, o.Events), min(o.Unknown, o.Events)
	if acked+unknown <= 0 {
		return
	}
	j := r.consumed[group]
	j.mu.Lock()
	defer j.mu.Unlock()
	pg := j.rec.at(at, int(o.Phase), r.partOf(o.Stream))
	pg.Unread += uint64(acked)
	if r.plan.Unanswered {
		pg.Unread += uint64(unknown)
	}
	h := hist(&pg.UnreadAges)
	age := func(due time.Duration, n uint64) { h.RecordN(o.Age(due, at), n) }
	r.eachDue(o, 0, acked, age)
	r.eachDue(o, o.Events-unknown, o.Events, age)
}

// eachDue calls f with when events from..to-1 of a batch were due and how many were due then; below 0: they
// had no due time.
func (r *Run) eachDue(o *Outcome, from, to int32, f func(due time.Duration, n uint64)) {
	if from >= to {
		return
	}
	if o.DueFirst < 0 || o.DueFirst == o.DueLast {
		f(o.DueFirst, uint64(to-from))
		return
	}
	for k := from; k < to; k++ {
		f(r.due(o.Stream, o.First+uint64(k)), 1)
	}
}

// readers is the number of readers that Consumed and Unread distinguish.
func (p *Plan) readers() int { return max(1, len(p.Groups)) }

// A groupTally adds up one group.
type groupTally struct {
	total    []tally           // per phase of the events
	open     map[int]groupRead // by interval: not closed yet
	consumed uint64            // in closed intervals, of the acked events
	backlog  uint64            // at the end of the newest closed interval
	most     uint64            // of it in the measurement

	unassigned time.Duration // so far, when the newest interval was closed
}

// A groupRead is what a group consumed in an interval: acked events, and all events by phase.
type groupRead struct {
	acked   uint64
	byPhase []uint64
}

func newGroupTallies(r *Run) []groupTally {
	all := make([]groupTally, len(r.plan.Groups))
	for i := range all {
		all[i] = groupTally{total: make([]tally, len(r.phases)), open: map[int]groupRead{}}
	}
	return all
}

// addToGroup adds a page to its group, in an interval.
func (c *collector) addToGroup(p *page, interval int) {
	if p.group == 0 {
		return
	}
	g := &c.groups[p.group-1]
	t := &g.total[p.phase]
	t.Counts.Add(p.Counts)
	t.Set.Merge(&p.Set)
	in := g.open[interval]
	if in.byPhase == nil {
		in.byPhase = make([]uint64, len(g.total))
	}
	in.acked += p.read
	in.byPhase[p.phase] += p.Consumed
	g.open[interval] = in
}

// closeGroups closes an interval, in which acked events were acked, for all groups and returns what each read in
// it. measured says that its end lies in the measurement.
func (c *collector) closeGroups(interval int, acked uint64, measured bool) []groupRead {
	c.acked += acked
	var all []groupRead
	for k := range c.groups {
		g := &c.groups[k]
		in := g.open[interval]
		delete(g.open, interval)
		g.consumed += in.acked
		if g.backlog = c.acked - min(c.acked, g.consumed); measured {
			g.most = max(g.most, g.backlog)
		}
		all = append(all, in)
	}
	return all
}

// groupRows are the groups' part of an interval's row of a phase. now says that the interval ends in that phase.
func (c *collector) groupRows(read []groupRead, phase int, now bool) []measure.GroupInterval {
	var rows []measure.GroupInterval
	for k := range read {
		g := &c.groups[k]
		row := measure.GroupInterval{Backlog: g.backlog}
		if of := read[k].byPhase; of != nil {
			row.Consumed = of[phase]
		}
		if f := c.run.plan.Groups[k].Unassigned; now && f != nil {
			total := max(g.unassigned, f())
			row.Unassigned, g.unassigned = total-g.unassigned, total
		}
		rows = append(rows, row)
	}
	return rows
}

// groupResults returns the results of the groups over the measurement, whose bounds whole has. acked is what was acked
// until its end.
func (c *collector) groupResults(whole measure.Tally, acked uint64) []GroupResult {
	r := c.run
	var all []GroupResult
	for k := range c.groups {
		g, j := &c.groups[k], r.consumed[k]
		j.mu.Lock()
		res := GroupResult{Tally: whole, Unassigned: g.unassigned}
		res.Name = r.plan.Groups[k].Name
		var lower lowerBounds
		consumed := uint64(0)
		for ph := range r.phases {
			consumed += j.arrived[ph].acked
			if ph < r.firstMeasurement() {
				continue
			}
			res.Counts.Add(g.total[ph].Counts)
			res.Set.Merge(&g.total[ph].Set)
			lower.merge(&j.lower[ph])
			res.Arrived += j.arrived[ph].events
			res.ArrivedBytes += j.arrived[ph].bytes
		}
		j.mu.Unlock()
		res.Lower = *lower.bound()
		res.Backlog = acked - min(acked, consumed)
		res.MostBacklog = max(g.most, res.Backlog)
		all = append(all, res)
	}
	return all
}
