package load

import (
	"time"

	"carronade/measure"
)

// partOf returns which part a stream belongs to; 0 without parts.
func (r *Run) partOf(stream int32) int {
	if r.mix == nil {
		return 0
	}
	return r.mix.part(stream)
}

// due returns when event k of a stream is due.
func (r *Run) due(stream int32, k uint64) time.Duration {
	if m := r.mix; m != nil && m.scheduled { // without the way through the numbers in the whole run
		i := m.part(stream)
		n := m.partitioner.of[i].Event(stream-m.starts[i], k)
		return m.parts[i].Schedule.Due(n)
	}
	return r.plan.Schedule.Due(r.partitioner.Event(stream, k))
}

// dueBefore returns how many events of a stream are due before a time.
func (r *Run) dueBefore(stream int32, at time.Duration) uint64 {
	if m := r.mix; m != nil && m.scheduled {
		i := m.part(stream)
		return m.partitioner.of[i].Before(stream-m.starts[i], m.parts[i].Schedule.Count(at))
	}
	return r.partitioner.Before(stream, r.plan.Schedule.Count(at))
}

// gateOf returns the gate of a part, or of a run without parts; nil: none.
func (r *Run) gateOf(part int) *Gate {
	if r.mix == nil {
		return r.plan.Gate
	}
	return r.mix.parts[part].Gate
}

// gates returns all gates.
func (r *Run) gates() []*Gate {
	var all []*Gate
	if g := r.plan.Gate; g != nil {
		all = append(all, g)
	}
	if r.mix != nil {
		for _, p := range r.mix.parts {
			if p.Gate != nil {
				all = append(all, p.Gate)
			}
		}
	}
	return all
}

// fed ends the firing when a gate is empty and closed: it reports whether one is.
func (r *Run) fed(now time.Duration) bool {
	for _, g := range r.gated {
		if !g.empty() {
			continue
		}
		if r.plan.Schedule != nil {
			r.Stop(ByFeed) // events due later do not belong to the run
			return true
		}
		r.feedEnded.Store(true)
		r.lastFiredAt.CompareAndSwap(int64(Never), int64(now))
		return true
	}
	return false
}

// serveParts fires what the bound and the shares of the parts allow. A pass over the
// lanes may make another part the next one, also by asking for a larger batch: it ends
// after two passes in which nothing was fired.
func (t *thread) serveParts(now time.Duration) {
	sh := t.run.shares
	for vain := 0; vain < 2; vain++ {
		changes := sh.changes.Load()
		turn := t.nextLane + 1
		for i := range t.lanes {
			if t.run.plan.Concurrency > 0 && t.callerSlots.n == 0 {
				t.nextLane += i
				return
			}
			ls := t.lanes[(t.nextLane+i)%len(t.lanes)]
			for t.canFire(ls) && sh.isNext(ls.part) && t.fireNext(ls, now) {
				vain = -1
			}
		}
		t.nextLane = turn
		if vain >= 0 && sh.changes.Load() == changes {
			return
		}
	}
}

// nextIsOurs reports whether a lane of the part that comes next can fire, which must
// not wait. Otherwise, if a lane waits for another part, the thread is counted as
// waiting: the shares wake it.
func (t *thread) nextIsOurs(firing bool) bool {
	sh := t.run.shares
	if sh == nil {
		return false
	}
	waits := false
	for _, ls := range t.lanes {
		waits = waits || firing && t.canFire(ls)
	}
	if waits != t.starved { // counted before the check below, so that no wake is lost
		if t.starved = waits; waits {
			sh.starved.Add(1)
		} else {
			sh.starved.Add(-1)
		}
	}
	if !waits {
		return false
	}
	for _, ls := range t.lanes {
		if t.canFire(ls) && sh.isNext(ls.part) {
			return true
		}
	}
	return false
}

// A partTally adds up one part.
type partTally struct {
	total   []tally // per phase
	classes map[string]uint64
}

func newPartTallies(r *Run) []partTally {
	if r.mix == nil {
		return nil
	}
	all := make([]partTally, len(r.mix.parts))
	for i := range all {
		all[i] = newPartTally(r)
	}
	return all
}

func newPartTally(r *Run) partTally {
	return partTally{total: make([]tally, len(r.phases)), classes: map[string]uint64{}}
}

// addToPart adds a page to its part.
func (c *collector) addToPart(p *page) {
	if c.parts == nil {
		return
	}
	own := &c.parts[p.part]
	t := &own.total[p.phase]
	t.Counts.Add(p.Counts)
	t.Set.Merge(&p.Set)
	t.statuses.Merge(p.statuses)
	for k, f := range p.failures {
		own.classes[k.class] += f.Events
	}
}

// partTallies returns the results of the parts over the measurement.
func (c *collector) partTallies(start, end time.Duration) []PartResult {
	r := c.run
	var all []PartResult
	for i := range c.parts {
		var accounts []*account
		for _, th := range r.threads {
			accounts = append(accounts, &th.parts[i])
		}
		all = append(all, r.partResult(&c.parts[i], accounts, measure.Tally{Name: r.mix.parts[i].Name, Start: start, End: end}))
	}
	return all
}

// partResult adds up what a part did in the measurement, whose name and bounds whole has.
func (r *Run) partResult(own *partTally, accounts []*account, whole measure.Tally) PartResult {
	res := PartResult{Classes: own.classes, Tally: whole}
	area := 0.0
	for ph := r.firstMeasurement(); ph < len(r.phases); ph++ {
		t := &own.total[ph]
		res.Counts.Add(t.Counts)
		res.Set.Merge(&t.Set)
		res.Statuses.Merge(t.statuses)
		for _, a := range accounts {
			p := &a.phases[ph]
			p.addTo(&res.Tally)
			res.Offered += p.offered
			res.Unsent += p.unsent
			area += p.area
		}
	}
	if res.Length() > 0 {
		res.InFlight = area / float64(res.Length())
	}
	return res
}
