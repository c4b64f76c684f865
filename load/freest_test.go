package load

import (
	"math/rand/v2"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// TestLaneHeap: whatever happens to lanes, the one on top is as a search finds it.
func TestLaneHeap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const most = 4
	th := &thread{run: &Run{}, shared: &backlog{}}
	for i := range 50 {
		ls := &laneState{index: i}
		ls.slots.fill(most, 0)
		th.lanes = append(th.lanes, ls)
		th.freest.add()
		th.updateRank(ls)
	}
	turns := make([]int, len(th.lanes))
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
		if a, b := turns[a.index], turns[b.index]; a != b {
			return a < b
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
			if top := th.freest.top(); top >= 0 {
				ls = th.lanes[top]
				ls.slots.pop(1)
				turns[top] = step + 1
				th.rankFired(ls)
			}
		}
		th.updateRank(ls)
		var want *laneState
		for _, ls := range th.lanes {
			if !ls.full && len(ls.refire) == 0 && ls.slots.n > 0 && (want == nil || better(ls, want)) {
				want = ls
			}
		}
		got := (*laneState)(nil)
		if top := th.freest.top(); top >= 0 {
			got = th.lanes[top]
		}
		assert.Must(t, got == want, "step %d: %+v is on top, want %+v", step, got, want)
	}
}
