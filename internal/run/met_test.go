package run

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestMet: who asked is told of each event that came back, with times whose sum
// is the report's, and of what was found before anything is fired.
func TestMet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mortar{echo: 2 * time.Millisecond, perShot: 1}
		var met []time.Duration
		var found map[string]any
		doc, err := Execute(t.Context(), Job{
			Workload: resolve(t, m, "op=roundtrip", "callers=1", "count=25", "events-per-shot=1"),
			Found:    func(facts map[string]any) { found = facts },
			Opened: func() {
				if found == nil {
					t.Error("opened before anything was found")
				}
			},
			Met: func(d time.Duration) { met = append(met, d) },
		})
		if err != nil {
			t.Fatal(err)
		}
		var sum time.Duration
		for _, d := range met {
			sum += d
		}
		if len(met) != 25 || doc.EndToEnd.Count != 25 || sum != 25*3*time.Millisecond {
			t.Errorf("told of %d events of %v in all, the report of %d; want 25 of 75ms", len(met), sum, doc.EndToEnd.Count)
		}
	})
}
