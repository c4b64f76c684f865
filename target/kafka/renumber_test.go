package kafka

import (
	"testing"

	"carronade/load"
)

// TestNewEpochSendsNothingTwice: when a partition begins a new epoch, a batch
// that may be in the log already is given up as unknown; under new numbers the
// broker could not know it again.
func TestNewEpochSendsNothingTwice(t *testing.T) {
	s := &sender{p: &producer{}, pid: 7, epoch: 3}
	home := &lane{s: s}
	made := func(seq int32, maybe bool) *slot {
		sl := &slot{home: home, batch: load.Batch{Seq: uint64(seq), Events: 10}, count: 10, seq: seq, maybe: maybe, live: len(s.live), sent: -1, class: load.Refused, text: "lost"}
		s.live = append(s.live, sl)
		return sl
	}
	sh := &share{pid: 7, epoch: 3, next: 30, bump: true}
	doubtful, first, second := made(0, true), made(10, false), made(20, false)
	sh.queue = append(sh.queue, doubtful, first, second)
	if !s.renumber(sh) {
		t.Fatal("no new epoch")
	}
	if len(sh.queue) != 2 || sh.queue[0] != first || sh.queue[1] != second {
		t.Fatalf("%d batches go again, want the two that are certainly not there", len(sh.queue))
	}
	if first.seq != 0 || second.seq != 10 || sh.next != 20 || sh.epoch != 4 {
		t.Errorf("sequences %d, %d, then %d in epoch %d; want 0, 10, 20 in 4", first.seq, second.seq, sh.next, sh.epoch)
	}
	if len(s.outcomes) != 1 || s.outcomes[0].Unknown != 10 {
		t.Errorf("outcomes %+v, want ten events unknown", s.outcomes)
	}
}
