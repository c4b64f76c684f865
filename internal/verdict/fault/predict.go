package fault

import (
	"math"
	"slices"
	"time"
)

// leastFailing is the share of events that were not acked up to which nothing counts as dropped.
const leastFailing = 0.01

const noHeadroom = "no headroom was seen: while it caught up, no more was acked than became due"

// explainNoHeadroom gives the cause if the rate while the whole caught up was low because one of its
// lanes was still silent.
func (s *Score) explainNoHeadroom() {
	if s.Worst < 0 || s.Whole.NotPredicted != noHeadroom {
		return
	}
	w := &s.Lanes[s.Worst]
	if w.Blackout != nil && w.Blackout.S > s.Whole.Blackout.S+2*Bin.Seconds() {
		s.Whole.NotPredicted = "the capacity is not known: while the others caught up, " + w.Name + " was still without acks"
	}
}

// predict computes what follows from the headroom.
func (o *observation) predict(v *view, n *Numbers, gap, since time.Duration) {
	switch {
	case !o.in.Scheduled:
		n.NotPredicted = "without a schedule the system sets the rate: it has no queue to catch up with"
		return
	case n.Blackout == nil || gap < 2*Bin:
		n.NotPredicted = "there was no blackout"
		return
	case n.Blackout.More:
		n.NotPredicted = "no ack came any more"
		return
	case *n.NotAcked > leastFailing:
		n.NotPredicted = "events were dropped or failed, so less was left to catch up with"
		return
	case o.changed(v, n):
		n.NotPredicted = "the load was another than before it"
		return
	case o.backlog(v, since+gap) > slowDrain*v.due*gap.Seconds()+float64(v.level):
		n.NotPredicted = "more events waited than became due in the blackout: there is more to catch up with"
		return
	}
	p := Prediction{}
	if o.in.Ceiling > 0 && n.Name == "" {
		p.PerS, p.Given = o.in.Ceiling, true
	} else if p.PerS = o.capacity(v, since+gap); p.PerS == 0 {
		n.NotPredicted = "the capacity is not known: it did not catch up for long enough to be seen"
		return
	}
	rho := v.due / p.PerS
	p.Headroom = 1 / rho
	switch {
	case rho < 0.999:
	case p.Given:
		n.NotPredicted = "the given ceiling is not above the load"
		return
	default:
		n.NotPredicted = noHeadroom
		return
	}
	d, delay, limit := gap.Seconds(), (since - o.mark).Seconds(), o.in.Limit.Seconds()
	p.CatchUpS = d * rho / (1 - rho)
	p.DrainedS = delay + d/(1-rho)
	if d > limit {
		p.BackS = delay + (d-limit)/(1-rho)
		p.Over = v.due * (d - limit) / (1 - rho)
	}
	p.LostEventS = v.due * d * d / (1 - rho) / 2
	n.Predicted = &p
}

// slowDrain is how many times the events that became due in a blackout may wait at its end.
const slowDrain = 1.5

// backlog returns how many events waited before a moment.
func (o *observation) backlog(v *view, at time.Duration) float64 {
	i := min(int((at-v.From)/Bin), len(v.waiting)) - 1
	if i < 0 {
		return 0
	}
	return float64(v.waiting[i])
}

// mostChange is the share by which the load may differ from that before.
const mostChange = 0.1

// changed reports whether another load was due until the disturbance was over than before it, by more
// than chance explains.
func (o *observation) changed(v *view, n *Numbers) bool {
	var due int64
	end := o.over(v, n)
	for i := v.first; i < end; i++ {
		due += v.offered(i)
	}
	want := v.due * (time.Duration(end-v.first) * Bin).Seconds()
	return math.Abs(float64(due)-want) > mostChange*want+3*math.Sqrt(want)
}

// leftOfBacklog is the share of the events that waited at the end of a blackout, of which it no longer
// matters how fast they are caught up with.
const leftOfBacklog = 0.1

// capacity is the median of the acked rates over a second while the queue was drained, or the rate
// over all of that time if it is shorter; 0 if it is not known. The highest rate would not do: what
// the system had finished before it went silent comes at once. Nor would that at the end: if a few
// more events wait for long than before the fault, the rate is that of the load.
func (o *observation) capacity(v *view, from time.Duration) float64 {
	a := int((from - v.From + Bin - 1) / Bin)
	b := a
	left := v.level + int64((o.backlog(v, from)-float64(v.level))*leftOfBacklog)
	for b < v.end && v.waiting[b] > max(v.level, left) { // also if that does not last: later rates are those of the load
		b++
	}
	if b-a < 3 {
		return 0
	}
	span := min(int(floorSpan/Bin), b-a)
	var sums []uint64
	var sum uint64
	for i := a; i < b; i++ {
		sum += uint64(v.Cells[i].Acked)
		if i-a >= span {
			sum -= uint64(v.Cells[i-span].Acked)
		}
		if i-a >= span-1 {
			sums = append(sums, sum)
		}
	}
	slices.Sort(sums)
	return float64(sums[len(sums)/2]) / (time.Duration(span) * Bin).Seconds()
}
