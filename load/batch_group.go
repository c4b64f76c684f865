package load

import (
	"math"
	"time"
)

// mostGroup limits the batches of a group: enough to make the cost per group
// negligible, and few enough that the thread reads its inbox often.
const mostGroup = 4096

// mayGroup reports whether batches may be fired in groups. They may not if a schedule
// gives each batch a due time, or if single outcomes matter (ledger, gate, retries).
func (t *thread) mayGroup() bool {
	p := &t.run.plan
	return p.Schedule == nil && p.BatchEvents > 0 && p.Gate == nil && t.run.mix == nil && p.Retry == 0 && p.Observe == nil
}

// composeGroup makes one batch group of a stream without a schedule. n is 0 when the
// lane or the bound allows only single batches now.
func (t *thread) composeGroup(s *stream, ls *laneState, now time.Duration) (n, phase, claimed int, exhausted bool) {
	if ls.grouper == nil || !t.grouped {
		return 0, 0, 0, false
	}
	p := &t.run.plan
	most := min(t.room(ls), mostGroup, math.MaxInt32/p.BatchEvents)
	switch {
	case p.Concurrency > 0:
		most = min(most, (t.callerSlots.n+len(t.lanes)-1)/len(t.lanes))
	case len(t.streams) > len(t.lanes):
		most = min(most, max(1, p.MaxInFlight/2)) // leave room for the other streams of the lane
	}
	if most < 2 {
		return 0, 0, 0, false
	}
	most = min(most, ls.grouper.BatchGroup(s.id, s.next, p.BatchEvents))
	if most < 2 {
		return 0, 0, 0, false
	}
	got, phase := t.run.claim(most*p.BatchEvents, now)
	if got == 0 {
		return 0, phase, 0, true
	}
	batches := got / p.BatchEvents
	if rest := got % p.BatchEvents; rest > 0 && batches > 0 {
		t.run.unclaim(rest, phase) // a smaller last batch is fired alone
		got -= rest
	}
	batch := &t.batches[0]
	*batch = Batch{
		Seq: ls.seq, First: s.next, Stream: s.id, Events: int32(got), Batches: int32(max(batches, 1)),
		Phase: int32(phase), DueFirst: -1, DueLast: -1,
	}
	ls.seq += uint64(batch.Batches)
	free := t.freeSlots(ls)
	batch.Ready = max(free.next(), ls.firstSeen)
	batch.Free = max(batch.Ready, ls.roomSince, s.routedSince)
	return 1, phase, got, false
}

// count returns the number of batches that s represents.
func (s *Batch) count() int { return int(max(s.Batches, 1)) }
