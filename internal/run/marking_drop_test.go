package run

import (
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/verdict/fault"
	"carronade/test/testkit/assert"
)

// TestDroppedAreScored: the events that a run drops while its system takes none are in the score of the
// fault.
func TestDroppedAreScored(t *testing.T) {
	const from, to = 20 * time.Second, 24 * time.Second
	synctest.Test(t, func(t *testing.T) {
		k := &fakeKind{perBatch: 1, lostFrom: from, lostUntil: to}
		d, err := Execute(t.Context(), Job{
			Portable: true, Workload: resolve(t, k, "rate=100/s", "for=1m", "overload=drop", "marks=true"),
			Marks: markAt(t, from),
		})
		assert.OK(t, err)
		assert.Must(t, len(d.Faults.Scores) == 1, "%d scores, want 1", len(d.Faults.Scores))
		n := d.Faults.Scores[0].Whole
		b := n.Blackout
		assert.True(t, b != nil && !b.More && b.S >= 3.9 && b.S <= 4.1, "the blackout is %+v, want 4 s", b)
		if dropped := d.Totals.Dropped; dropped < 399 || dropped > 401 || n.Over != dropped {
			t.Errorf("of some 400 events that were due meanwhile, %d were dropped, and %d count as over the limit", dropped, n.Over)
		}
	})
}

// markAt returns a Job.Marks that marks a fault at a time of the run.
func markAt(t *testing.T, at time.Duration) func(m *Marker) {
	return func(m *Marker) {
		time.AfterFunc(at, func() {
			now := time.Now()
			_, err := m.Mark(fault.MarkFault, "stall", "mark", now, now)
			assert.True(t, err == nil, "%v", err)
		})
	}
}
