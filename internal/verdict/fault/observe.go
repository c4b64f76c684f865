package fault

import (
	"math"
	"slices"
	"time"
)

// An observation is the time around one mark.
type observation struct {
	in          *Input
	mark, until time.Duration
	open        time.Duration // until when acks are looked at
	from, to    time.Duration // of the baseline
	blind       bool          // without a baseline
	heal        bool          // the mark is one: acks may come from it on
}

// A view is the bins of one lane around a mark, with the baseline of the lane.
type view struct {
	Series
	first   int     // the mark's bin
	end     int     // the first bin that is no longer observed
	waiting []int64 // events that wait at the end of each bin

	length   time.Duration // of the baseline
	rate     float64       // events/s acked
	due      float64       // events/s due
	response float64       // seconds
	level    int64         // most events that wait when nothing is wrong
	problem  string
}

func (v *view) why() string {
	if why := tooShort(v.length); why != "" {
		return why
	}
	return v.problem
}

// look reads the bins of a lane. Bins between the baseline and the mark are in the view, too.
func (o *observation) look(lane int) view {
	v := view{Series: o.in.Window(lane, min(o.from, o.mark), o.open), length: o.to - o.from}
	v.first = min(int((o.mark-v.From)/Bin), len(v.Cells))
	v.end = min(int((o.until-v.From)/Bin), len(v.Cells))
	v.waiting = make([]int64, len(v.Cells))
	n := v.Waiting
	for i := range v.Cells {
		if i == v.first-1 && o.to < v.at(i) { // bins before it may have been dropped
			n = o.in.Window(lane, v.at(i), v.at(i)).Waiting
		}
		n += int64(v.Cells[i].Due) - v.Cells[i].settled()
		v.waiting[i] = n
	}
	a, b := int((o.from-v.From)/Bin), min(int((o.to-v.From)/Bin), len(v.Cells))
	if b-a < 6 {
		return v
	}
	o.measure(&v, a, b)
	return v
}

// began reports whether something went wrong before a moment: in the whole, or in a lane.
func (o *observation) began(whole *view, before time.Duration) bool {
	if o.in.Reading {
		early := *o
		early.until, early.open = before, before
		g, found := early.longestRead()
		return found && g.length() > o.in.Limit
	}
	wrong := func(v *view) bool {
		end := min(v.end, int((before-v.From)/Bin))
		for i := v.first; i < end; i++ {
			c := &v.Cells[i]
			if c.lost() > 0 || o.bad(c) || v.why() == "" && v.waiting[i] > v.level {
				return true
			}
		}
		return false
	}
	if wrong(whole) {
		return true
	}
	for l := range o.in.Lanes {
		v := o.look(l)
		if wrong(&v) {
			return true
		}
	}
	return false
}

// blocks is into how many parts a baseline is cut to see whether it is stable.
const blocks = 6

// measure finds the baseline in the bins from a until before b.
func (o *observation) measure(v *view, a, b int) {
	var acked, due, over float64
	var means, queue []float64
	var parts [blocks]float64
	for i := a; i < b; i++ {
		c := &v.Cells[i]
		acked += float64(c.Acked)
		due += float64(c.offered())
		over += float64(c.bad())
		if c.Answered > 0 {
			means = append(means, c.Response/float64(c.Answered))
		}
		queue = append(queue, float64(v.waiting[i]))
		parts[(i-a)*blocks/(b-a)] += float64(c.Acked)
	}
	length := (time.Duration(b-a) * Bin).Seconds()
	v.rate, v.due = acked/length, due/length
	if len(means) > 0 {
		slices.Sort(means)
		v.response = means[len(means)/2]
	}
	mean, deviation := spread(queue)
	v.level = int64(math.Ceil(max(mean+3*deviation, slices.Max(queue))))
	for i := range parts {
		parts[i] /= length / blocks
	}
	_, between := spread(parts[:])
	third := len(queue) / 3
	early, _ := spread(queue[:third])
	late, d := spread(queue[len(queue)-third:])
	switch {
	case acked == 0 && o.in.Reading:
		v.problem = "cannot say: nothing was read before it"
	case acked == 0:
		v.problem = "cannot say: nothing was acked before it"
	case due > 0 && over/due > o.in.Budget:
		v.problem = "cannot say: the limit did not hold before it either"
	case 3*between/math.Sqrt(blocks) > 0.15*v.rate && o.in.Reading:
		v.problem = "cannot say how low the rate fell: it was not stable before"
	case 3*between/math.Sqrt(blocks) > 0.15*v.rate:
		v.problem = "cannot say: the acked rate before it was not stable"
	case o.in.Scheduled && late > 2*early+3*d/math.Sqrt(float64(third))+0.1*v.due:
		v.problem = "cannot say: the queue grew before it"
	}
}

// spread returns mean and standard deviation.
func spread(x []float64) (mean, deviation float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(max(len(x), 1))
	for _, v := range x {
		deviation += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(deviation / float64(max(len(x)-1, 1)))
}

// numbers scores a lane.
func (o *observation) numbers(v *view) Numbers {
	var n Numbers
	o.noticed(v, &n)
	for i := v.first; i < v.end; i++ {
		n.Over += uint64(v.Cells[i].bad())
	}
	if o.blind || v.rate == 0 {
		o.blackout(v, &n, len(v.Cells))
		if !o.blind {
			n.NotPredicted = "nothing was acked here before"
		}
		return n
	}
	stay := max(leastStay, 10*o.in.Limit)
	n.Back = o.back(v, stay)
	waits := o.waits(v, stay)
	n.Drained = o.wellSince(v, stay, func(i int) bool { return waits[i] }, nil)
	// A failure long after everything was well again does not belong to this fault.
	last := len(v.Cells)
	if !n.Back.More && !n.Drained.More {
		last = min(last, o.over(v, &n)+int(stay/Bin))
	}
	gap, since := o.blackout(v, &n, last)
	o.lost(v, &n)
	o.floor(v, &n)
	o.predict(v, &n, gap, since)
	return n
}

// blackout finds the longest time from the mark on without an ack although events were due. After
// an ack that left nothing waiting it does not begin before the next event is due. since is when
// it began.
func (o *observation) blackout(v *view, n *Numbers, until int) (length, since time.Duration) {
	last := o.mark // the newest ack, or the mark
	idle := v.first > 0 && v.first <= len(v.waiting) && v.waiting[v.first-1] <= 0
	longest, at := time.Duration(-1), o.mark
	open := false
	look := func(begin, end time.Duration, more bool) {
		if end-begin > longest {
			longest, at, open = end-begin, begin, more
		}
	}
	var next *Time // the first ack after the mark
	for i := v.first; i < until; i++ {
		c := &v.Cells[i]
		begin := v.at(i)
		if idle && (c.offered() > 0 || v.waiting[i] > 0) {
			last, idle = max(last, begin), false
		}
		if c.Acked > 0 {
			first, end := begin+time.Duration(c.First)*time.Microsecond, begin+time.Duration(c.Last)*time.Microsecond
			if first > o.mark {
				look(min(last, first), first, false)
				if next == nil {
					next = &Time{S: (first - o.mark).Seconds()}
				}
			}
			if next == nil && end > o.mark {
				next = &Time{S: (end - o.mark).Seconds()}
			}
			last, idle = max(last, end), v.waiting[i] <= 0
		}
	}
	if !idle && o.open > last && until == len(v.Cells) {
		look(last, o.open, true)
	}
	if longest < 0 {
		return 0, o.mark // nothing was due
	}
	n.Blackout = &Time{S: longest.Seconds(), More: open}
	n.FirstAck = &Time{S: (at + longest - o.mark).Seconds(), More: open}
	if next != nil && (o.heal || longest < o.in.Limit) {
		n.FirstAck = next
	}
	return longest, at
}

// longest returns the longest blackout of the whole or a lane that is longer than least; nil: there is
// none.
func (o *observation) longest(least time.Duration) *Time {
	if o.in.Reading {
		if g, found := o.longestRead(); found && g.length() > least {
			return &Time{S: g.length().Seconds(), More: g.open}
		}
		return nil
	}
	var longest *Time
	for lane := -1; lane < len(o.in.Lanes); lane++ {
		v := o.look(lane)
		var n Numbers
		if length, _ := o.blackout(&v, &n, len(v.Cells)); length > least {
			least, longest = length, n.Blackout
		}
	}
	return longest
}

// noticed finds when the first event was over the limit, failed, or was dropped.
func (o *observation) noticed(v *view, n *Numbers) {
	for i := v.first; i < v.end; i++ {
		c := &v.Cells[i]
		at := max(0, v.at(i)-o.mark)
		if c.lost() > 0 {
			n.Noticed = &Time{S: at.Seconds()}
			return
		}
		if o.bad(c) { // due in this bin, and over the limit this much later
			at += o.in.Limit
			for j := i + 1; j < v.end && v.at(j)-o.mark < at; j++ {
				if v.Cells[j].lost() > 0 {
					at = v.at(j) - o.mark
				}
			}
			n.Noticed = &Time{S: at.Seconds()}
			return
		}
	}
}

// bad reports whether more events of a bin are over the limit than chance explains.
func (o *observation) bad(c *Cell) bool { return o.tooMany(uint64(c.bad()), uint64(c.offered())) }

// tooMany reports whether more of n events are over the limit than chance explains: more than three
// standard deviations above what the budget allows.
func (o *observation) tooMany(over, n uint64) bool {
	b := o.in.Budget
	return float64(over) > float64(n)*b+3*math.Sqrt(float64(n)*b*(1-b))
}

// back finds since when the limit holds: no bin is bad, and all of them together are not, either.
// Of few events in a bin one may be over the limit by chance, but not one in each.
func (o *observation) back(v *view, stay time.Duration) *Time {
	due, over := make([]uint64, len(v.Cells)+1), make([]uint64, len(v.Cells)+1) // before each bin
	for i := range v.Cells {
		due[i+1], over[i+1] = due[i]+uint64(v.Cells[i].offered()), over[i]+uint64(v.Cells[i].bad())
	}
	return o.wellSince(v, stay, func(i int) bool { return o.bad(&v.Cells[i]) }, func(a, b int) bool { return o.tooMany(over[b]-over[a], due[b]-due[a]) })
}

// Of the bins of a stretch in which the queue has drained, one in binsAWait may have more events waiting
// than any before the fault, for shortWait at a time: a longer stretch has a higher maximum by chance.
const (
	shortWait = 2 // bins
	binsAWait = 20
)

// waits says of each bin whether more events waited than before the fault. The first time counts
// always; later ones that are short and few in a stretch of the given length do not.
func (o *observation) waits(v *view, stay time.Duration) []bool {
	out := make([]bool, len(v.Cells))
	span := int(stay / Bin)
	var passed []int // bins that do not count
	for i, first := v.first, true; i < v.end; {
		j := i
		for j < v.end && v.waiting[j] > v.level {
			j++
		}
		if j == i {
			i++
			continue
		}
		recent := 0
		for k := len(passed) - 1; k >= 0 && passed[k] > i-span; k-- {
			recent++
		}
		counts := first || j == v.end || j-i > shortWait || recent+j-i > span/binsAWait
		for ; i < j; i++ {
			if out[i] = counts; !counts {
				passed = append(passed, i)
			}
		}
		first = false
	}
	return out
}

// wellSince finds the beginning of the first stretch of the given length in which no bin is wrong, nor
// all of them together. together may be nil.
func (o *observation) wellSince(v *view, stay time.Duration, wrong func(i int) bool, together func(from, to int) bool) *Time {
	span := int((stay + Bin - 1) / Bin)
	good, ever := 0, false
	for i := v.first; i < v.end; i++ {
		if wrong(i) {
			good, ever = 0, true
			continue
		}
		good++
		if good < span && v.end-v.first >= span {
			continue
		}
		begin := max(i-span+1, v.first) // an observation that is shorter is one stretch
		switch {
		case together != nil && together(begin, i+1):
			ever = ever || good >= span || i == v.end-1
		case ever && good >= span:
			return &Time{S: max(0, v.at(begin)-o.mark).Seconds()}
		}
	}
	if ever {
		return &Time{S: (o.until - o.mark).Seconds(), More: true}
	}
	return &Time{}
}

// over returns the bin in which the disturbance is over.
func (o *observation) over(v *view, n *Numbers) int {
	if n.Drained == nil || n.Drained.More {
		return v.end
	}
	end := n.Drained.S
	if n.Back != nil && !n.Back.More {
		end = max(end, n.Back.S)
	}
	return min(v.end, int((o.mark+seconds(end)-v.From+Bin-1)/Bin))
}

// lost adds up the lost time, and counts what was not acked.
func (o *observation) lost(v *view, n *Numbers) {
	var area float64
	var offered, acked int64
	for i, end := v.first, o.over(v, n); i < end; i++ {
		c := &v.Cells[i]
		area += c.Response - float64(c.Answered)*v.response
		offered += v.offered(i)
		acked += int64(c.Answered)
	}
	share := 0.0
	if offered > 0 {
		share = max(0, 1-float64(acked)/float64(offered))
	}
	n.NotAcked = &share
	if o.in.Scheduled {
		area = max(area, 0)
		n.LostEventS = &area
	}
}

// floor finds the lowest acked rate over a second.
func (o *observation) floor(v *view, n *Numbers) {
	const span = int(floorSpan / Bin)
	var sum uint64
	least, whole := uint64(math.MaxUint64), false
	for i := v.first; i < v.end; i++ {
		sum += uint64(v.Cells[i].Acked)
		if i-v.first >= span {
			sum -= uint64(v.Cells[i-span].Acked)
		}
		if i-v.first >= span-1 {
			least, whole = min(least, sum), true
		}
	}
	if whole {
		share := float64(least) / floorSpan.Seconds() / v.rate
		n.Floor = &share
	}
}
