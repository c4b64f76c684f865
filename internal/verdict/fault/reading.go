package fault

import "time"

// A run that only reads has no events that are due: what waits for it, only the system knows. So its
// blackouts are times in which a log gave no sign of life although it should have: no event, and no
// word that there is none. The rest of a score is about times that such a run does not have.

// A sign is when events of a log arrived, or when the system said that there are no more of them.
type sign struct {
	at    time.Duration
	empty bool
}

// A gap is a time without a sign. An open one was not over when the observation ended.
type gap struct {
	from, to time.Duration
	open     bool
}

func (g *gap) length() time.Duration { return g.to - g.from }

// latePatience is by how much the system may exceed its patience before it says again that there is
// nothing to read.
const latePatience = 2 * Bin

// lookBack is how long before a mark a lane's last sign is searched: an earlier fault may have silenced
// it, as long ago as the recorder keeps what followed that, or it has few events.
const lookBack = keptAfter

// gaps returns the times without a sign of a lane from the mark on. A lane that has given none before
// has no gap until its first. After the word that there is nothing, the system may wait for new events
// for a while before it answers again: that is not a gap.
//
// The first and the last sign of one bin do not form a gap: others came between them.
func (o *observation) gaps(lane int) []gap {
	v := view{Series: o.in.Window(lane, o.mark-lookBack, o.open)}
	var out []gap
	var last sign
	lastBin, known := -1, false
	look := func(bin int, s sign, open bool) {
		patient := last.empty && s.at-last.at <= o.in.Patience+latePatience
		if known && bin != lastBin && s.at > max(o.mark, last.at) && !patient {
			out = append(out, gap{max(o.mark, last.at), s.at, open})
		}
		if !known || s.at >= last.at {
			last, lastBin, known = s, bin, true
		}
	}
	for i := range v.Cells {
		for _, s := range v.signs(i) {
			if s.at >= o.open {
				break // of the time after the observation
			}
			look(i, s, false)
		}
	}
	if last.at <= o.mark || o.open-last.at >= Bin { // every run ends with less than a bin without a sign
		look(len(v.Cells), sign{at: o.open}, true)
	}
	return out
}

// signs returns the signs of a bin that matter, in order of time.
func (v *view) signs(i int) []sign {
	c := &v.Cells[i]
	begin := v.at(i)
	micros := func(n uint32) time.Duration { return begin + time.Duration(n)*time.Microsecond }
	var out []sign
	if c.Acked > 0 {
		out = append(out, sign{at: micros(c.First)}, sign{at: micros(c.Last)})
	}
	if c.Empty > 0 {
		switch s := (sign{micros(c.Empty - 1), true}); {
		case c.Acked == 0 || s.at >= micros(c.Last):
			out = append(out, s)
		case s.at < micros(c.First):
			out = append([]sign{s}, out...)
		}
	}
	return out
}

// longestGap returns the longest gap of the whole run; false: there is none. If lanes are recorded, it
// is the longest time in which no event of any lane arrived while one lane had a gap: other lanes that
// have nothing to read do not answer for it.
func (o *observation) longestGap(whole *view, lanes [][]gap) (gap, bool) {
	if len(lanes) == 0 {
		return longestOf(o.gaps(-1))
	}
	silent := o.withoutEvents(whole)
	var longest gap
	found := false
	for _, all := range lanes {
		for i, j := 0, 0; i < len(silent) && j < len(all); {
			a, b := &silent[i], &all[j]
			g := gap{from: max(a.from, b.from), to: min(a.to, b.to)}
			g.open = a.open && b.open
			if g.from < g.to && (!found || g.length() > longest.length()) {
				longest, found = g, true
			}
			if a.to < b.to {
				i++
			} else {
				j++
			}
		}
	}
	return longest, found
}

// withoutEvents returns the times from the mark on in which no event arrived.
func (o *observation) withoutEvents(v *view) []gap {
	var out []gap
	last, lastBin := o.mark, -1
	for i := v.first; i < len(v.Cells); i++ {
		for _, s := range v.signs(i) {
			if !s.empty && s.at > last && s.at < o.open {
				if i != lastBin {
					out = append(out, gap{from: last, to: s.at})
				}
				last, lastBin = s.at, i
			}
		}
	}
	return append(out, gap{last, o.open, true})
}

func longestOf(all []gap) (longest gap, found bool) {
	for i := range all {
		if !found || all[i].length() > longest.length() {
			longest, found = all[i], true
		}
	}
	return longest, found
}

// readNumbers scores the whole or a lane, whose longest gap is given.
func (o *observation) readNumbers(v *view, longest gap, found bool) Numbers {
	var n Numbers
	if found {
		n.Blackout = &Time{S: longest.length().Seconds(), More: longest.open}
		n.FirstAck = &Time{S: (longest.to - o.mark).Seconds(), More: longest.open}
	} else if _, alive := o.next(v, true); alive {
		n.Blackout = &Time{}
	}
	if o.heal || !found || longest.length() < o.in.Limit {
		if at, came := o.next(v, false); came {
			n.FirstAck = &Time{S: (at - o.mark).Seconds()}
		}
	}
	if !o.blind && v.rate > 0 {
		o.floor(v, &n)
	}
	return n
}

// next returns when the next event came after the mark, or with empty the next sign; false: none came.
func (o *observation) next(v *view, empty bool) (at time.Duration, came bool) {
	for i := v.first; i < len(v.Cells); i++ {
		for _, s := range v.signs(i) {
			if (empty || !s.empty) && s.at > o.mark && s.at < o.open {
				return s.at, true
			}
		}
	}
	return 0, false
}

// lookAtLanes returns the lanes of an observation, with their gaps.
func (o *observation) lookAtLanes() (views []view, gaps [][]gap) {
	for l := range o.in.Lanes {
		v := o.look(l)
		views, gaps = append(views, v), append(gaps, o.gaps(l))
	}
	return views, gaps
}

// longestRead returns the longest gap of the whole or a lane.
func (o *observation) longestRead() (longest gap, found bool) {
	_, gaps := o.lookAtLanes()
	whole := o.look(-1)
	if longest, found = o.longestGap(&whole, gaps); found && len(gaps) == 0 {
		return longest, found
	}
	for _, all := range gaps {
		if g, ok := longestOf(all); ok && (!found || g.length() > longest.length()) {
			longest, found = g, true
		}
	}
	return longest, found
}

// scoreReading scores a run that only reads.
func (o *observation) scoreReading(s *Score, whole *view) {
	views, gaps := o.lookAtLanes()
	g, found := o.longestGap(whole, gaps)
	s.Whole = o.readNumbers(whole, g, found)
	for l, name := range o.in.Lanes {
		g, found := longestOf(gaps[l])
		n := o.readNumbers(&views[l], g, found)
		n.Name = name
		if s.Lanes = append(s.Lanes, n); s.Worst < 0 || worse(&n, &s.Lanes[s.Worst]) {
			s.Worst = l
		}
	}
}

// Arrived counts events of a lane that arrived at a moment, in a run that only reads.
func (r *Recorder) Arrived(lane int, at time.Duration, events int32) {
	r.observe(lane, at, func(c *Cell, micros uint32) { c.arrived(micros, uint32(events)) })
}

// Empty notes that at a moment the system said that it has no more events of a lane than arrived, in a
// run that only reads.
func (r *Recorder) Empty(lane int, at time.Duration) {
	r.observe(lane, at, func(c *Cell, micros uint32) { c.Empty = max(c.Empty, micros+1) })
}

// observe changes the cell of a moment, if there is room for it.
func (r *Recorder) observe(lane int, at time.Duration, change func(c *Cell, micros uint32)) {
	s := r.shards[lane%len(r.shards)]
	s.mu.Lock()
	defer s.mu.Unlock()
	bin, micros := binOf(at)
	if c, _ := s.cell(bin, lane); c != nil {
		change(c, micros)
	}
}
