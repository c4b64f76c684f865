package load

import "time"

// A laneHeap has the lanes that share a backlog. On top is the one that fires next: the one with
// the most free slots; of several, the one whose next slot has been free the longest; and of
// those, the one that has not fired for the longest. With thousands of lanes, a search for it
// takes far longer than the batch, and while a thread searches it reads no answers.
//
// Ranks are in the heap itself and not in the lanes: those of thousands of lanes are not in the
// processor's cache. For the same reason a lane has four below it, which are next to each other.
type laneHeap struct {
	ranks []laneRank
	at    []int32 // where each lane of the thread is in ranks
}

// A laneRank is a lane's place in the order.
type laneRank struct {
	since time.Duration // when the next of its free slots became free
	turn  uint64        // of its last batch
	free  int32         // slots; 0 if the lane accepts nothing
	lane  int32         // index of the lane
}

func (r *laneRank) before(o *laneRank) bool {
	switch {
	case r.free != o.free:
		return r.free > o.free
	case r.since != o.since:
		return r.since < o.since
	case r.turn != o.turn:
		return r.turn < o.turn
	}
	return r.lane < o.lane
}

// add adds the next lane of the thread.
func (h *laneHeap) add() {
	n := int32(len(h.ranks)) //nolint:gosec // far fewer
	h.ranks, h.at = append(h.ranks, laneRank{lane: n}), append(h.at, n)
}

// top returns the lane that fires next; below 0: none has room.
func (h *laneHeap) top() int {
	if len(h.ranks) == 0 || h.ranks[0].free == 0 {
		return -1
	}
	return int(h.ranks[0].lane)
}

// move moves the lane that is at i, and now has rank r, to its place.
func (h *laneHeap) move(i int, r laneRank) {
	for i > 0 {
		up := (i - 1) / 4
		if !r.before(&h.ranks[up]) {
			break
		}
		h.place(i, h.ranks[up])
		i = up
	}
	for {
		first := i
		best := &r
		for k := 4*i + 1; k <= 4*i+4 && k < len(h.ranks); k++ {
			if h.ranks[k].before(best) {
				first, best = k, &h.ranks[k]
			}
		}
		if first == i {
			break
		}
		h.place(i, *best)
		i = first
	}
	h.place(i, r)
}

func (h *laneHeap) place(i int, r laneRank) {
	h.ranks[i] = r
	h.at[r.lane] = int32(i) //nolint:gosec // far fewer
}

// rankFired moves a lane to its place after it has fired.
func (t *thread) rankFired(ls *laneState) {
	if t.shared == nil {
		return
	}
	t.turns++
	t.rank(ls, t.turns)
}

// updateRank moves a lane to its place after its slots, or whether it accepts batches, have
// changed.
func (t *thread) updateRank(ls *laneState) {
	if t.shared == nil {
		return
	}
	t.rank(ls, t.freest.ranks[t.freest.at[ls.index]].turn)
}

func (t *thread) rank(ls *laneState, turn uint64) {
	r := laneRank{turn: turn, lane: int32(ls.index)} //nolint:gosec // far fewer
	if len(ls.refire) == 0 {
		r.free = int32(min(t.room(ls), 1<<30)) //nolint:gosec // bounded
	}
	if r.free > 0 {
		slots := ls.slots.iterate()
		r.since = max(ls.roomSince, slots.next())
	}
	t.freest.move(int(t.freest.at[ls.index]), r)
}
