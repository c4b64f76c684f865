package run

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// TestCameBack: CameBack gets each event that came back, with times whose sum
// is the report's, and Facts is called before anything is sent.
func TestCameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &fakeKind{consumeDelay: 2 * time.Millisecond, perBatch: 1}
		var met []time.Duration
		var found map[string]any
		doc, err := Execute(t.Context(), Job{
			Portable: true,
			Workload: resolve(t, m, "op=roundtrip", "concurrency=1", "count=25", "batch-events=1"),
			Facts:    func(facts map[string]any) { found = facts },
			Opened:   func() { assert.True(t, found != nil, "Opened was called before Facts") },
			CameBack: func(d time.Duration) { met = append(met, d) },
		})
		assert.OK(t, err)
		var sum time.Duration
		for _, d := range met {
			sum += d
		}
		if len(met) != 25 || doc.EndToEnd.Count != 25 || sum != 25*3*time.Millisecond {
			t.Errorf("got %d events of %v in all, the report has %d; want 25 of 75ms", len(met), sum, doc.EndToEnd.Count)
		}
	})
}

// TestOutcomes: Outcomes gets the outcome of every event, with a trace or
// without one.
func TestOutcomes(t *testing.T) {
	for _, file := range []string{"", filepath.Join(t.TempDir(), "t.parquet")} {
		synctest.Test(t, func(t *testing.T) {
			set, acked, service := []string{"concurrency=2", "count=30", "batch-events=3"}, uint32(0), measure.NewHistogram()
			if file != "" {
				set = append(set, "trace="+file)
			}
			m := &fakeKind{consumeDelay: 2 * time.Millisecond, perBatch: 3}
			doc, err := Execute(t.Context(), Job{
				Portable: true,
				Workload: resolve(t, m, set...), Trace: file,
				Outcomes: func(out []load.Outcome) { // on one thread: there is one client
					for i := range out {
						acked += uint32(out[i].Acked)
						service.Record(out[i].Done - out[i].Sent)
					}
				},
			})
			assert.OK(t, err)
			if acked != 30 || doc.Totals.Acked != 30 || service.Count() != doc.Service.Count || file != "" && doc.Trace.Rows == 0 {
				t.Errorf("saw %d events in %d batches, the report has %d in %d", acked, service.Count(), doc.Totals.Acked, doc.Service.Count)
			}
		})
	}
}

// TestPermit: an error of Permit ends the run before anything is sent.
func TestPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("not this one")
		opened := false
		doc, err := Execute(t.Context(), Job{
			Portable: true, Workload: resolve(t, &fakeKind{}, "count=10"),
			Permit: func(map[string]any) error { return refused },
			Opened: func() { opened = true },
			Watch:  func(load.Snapshot) { t.Error("the run began") },
		})
		assert.True(t, errors.Is(err, refused) && doc == nil && !opened, "got %v and %v, opened %v; want the error alone", doc, err, opened)
	})
}
