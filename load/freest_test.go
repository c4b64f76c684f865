package load

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestLaneHeap: whatever happens to lanes, the one on top is as a search finds it.
func TestLaneHeap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const most = 4
	th := &thread{run: &Run{}, shared: &backlog{}}
	for i := range 50 {
		ls := &laneState{index: i, rank: laneRank{at: i}}
		ls.slots.fill(most, 0)
		th.lanes, th.freest = append(th.lanes, ls), append(th.freest, ls)
		th.updateRank(ls)
	}
	// better reports whether a lane comes before another.
	better := func(a, b *laneState) bool {
		if a.slots.n != b.slots.n {
			return a.slots.n > b.slots.n
		}
		sa, sb := a.slots.iterate(), b.slots.iterate()
		fa, fb := max(a.roomSince, sa.next()), max(b.roomSince, sb.next())
		if fa != fb {
			return fa < fb
		}
		if a.rank.turn != b.rank.turn {
			return a.rank.turn < b.rank.turn
		}
		return a.index < b.index
	}
	for step := range 20_000 {
		now := time.Duration(step / 3)
		ls := th.lanes[rnd.IntN(len(th.lanes))]
		switch rnd.IntN(6) {
		case 0:
			ls.full = true
		case 1:
			ls.full, ls.roomSince = false, now
		case 2:
			if ls.refire == nil {
				ls.refire = make([]Batch, 1)
			} else {
				ls.refire = nil
			}
		case 3:
			if ls.slots.n < most {
				ls.slots.push(now, 1)
			}
		default:
			if ls = th.freest.top(); ls != nil {
				ls.slots.pop(1)
				th.turns++
				ls.rank.turn = th.turns
			} else {
				ls = th.lanes[0]
			}
		}
		th.updateRank(ls)
		var want *laneState
		for _, ls := range th.lanes {
			if !ls.full && len(ls.refire) == 0 && ls.slots.n > 0 && (want == nil || better(ls, want)) {
				want = ls
			}
		}
		if got := th.freest.top(); got != want {
			t.Fatalf("step %d: %+v is on top, want %+v", step, got, want)
		}
	}
}
