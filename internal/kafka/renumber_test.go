package kafka

import (
	"testing"

	"carronade/load"
	"carronade/test/testkit/assert"
)

// TestNewEpochSendsNothingTwice: when a partition begins a new epoch, a batch
// that may be in the log already is given up as unknown. Under new numbers the
// broker could not detect the duplicate.
func TestNewEpochSendsNothingTwice(t *testing.T) {
	t.Parallel()
	s := &sender{p: &producer{}, pid: 7, epoch: 3}
	l := &lane{s: s}
	newSlot := func(seq int32, maybe bool) *slot {
		sl := &slot{lane: l, batch: load.Batch{Seq: uint64(seq), Events: 10}, count: 10, seq: seq, maybeAppended: maybe, liveIndex: len(s.live), sent: -1, class: load.Refused, text: "lost"}
		s.live = append(s.live, sl)
		return sl
	}
	ps := &partitionState{pid: 7, epoch: 3, next: 30, needsEpoch: true}
	doubtful, first, second := newSlot(0, true), newSlot(10, false), newSlot(20, false)
	ps.queue = append(ps.queue, doubtful, first, second)
	assert.Must(t, s.renumber(ps), "no new epoch")
	assert.Must(t, len(ps.queue) == 2 && ps.queue[0] == first && ps.queue[1] == second,
		"%d batches are sent again, want the two that were certainly not appended", len(ps.queue))
	assert.True(t, first.seq == 0 && second.seq == 10 && ps.next == 20 && ps.epoch == 4,
		"sequences %d, %d, then %d in epoch %d; want 0, 10, 20 in 4", first.seq, second.seq, ps.next, ps.epoch)
	assert.True(t, len(s.outcomes) == 1 && s.outcomes[0].Unknown == 10,
		"outcomes %+v, want ten events unknown", s.outcomes)
}
