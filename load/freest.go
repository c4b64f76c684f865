package load

import (
	"cmp"
	"time"
)

// A laneHeap has the lanes that share a backlog. On top is the one that fires next: the one with
// the most free slots; of several, the one whose next slot has been free the longest; and of
// those, the one that has not fired for the longest. With thousands of lanes, a search for it
// takes far longer than the batch, and while a thread searches it reads no answers.
type laneHeap []*laneState

// A laneRank is a lane's place in the heap.
type laneRank struct {
	free  int           // slots; 0 if the lane accepts nothing
	since time.Duration // when the next of them became free
	turn  uint64        // of its last batch
	at    int           // index in the heap
}

// top returns the lane that fires next; nil if none has room.
func (h laneHeap) top() *laneState {
	if len(h) == 0 || h[0].rank.free == 0 {
		return nil
	}
	return h[0]
}

// updateRank moves a lane to its place, after its slots or whether it accepts batches have changed.
func (t *thread) updateRank(ls *laneState) {
	if t.shared == nil {
		return
	}
	r := &ls.rank
	r.free, r.since = t.room(ls), 0
	if len(ls.refire) > 0 {
		r.free = 0
	}
	if r.free > 0 {
		slots := ls.slots.iterate()
		r.since = max(ls.roomSince, slots.next())
	}
	t.freest.fix(r.at)
}

func (h laneHeap) before(i, k int) bool {
	a, b := &h[i].rank, &h[k].rank
	if a.free != b.free {
		return a.free > b.free
	}
	return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.turn, b.turn), cmp.Compare(h[i].index, h[k].index)) < 0
}

// fix moves the lane at i up or down.
func (h laneHeap) fix(i int) {
	for i > 0 && h.before(i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		first := i
		if l := 2*i + 1; l < len(h) && h.before(l, first) {
			first = l
		}
		if r := 2*i + 2; r < len(h) && h.before(r, first) {
			first = r
		}
		if first == i {
			return
		}
		h.swap(i, first)
		i = first
	}
}

func (h laneHeap) swap(i, k int) {
	h[i], h[k] = h[k], h[i]
	h[i].rank.at, h[k].rank.at = i, k
}
