package load

import (
	"testing"
	"testing/synctest"
	"time"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

// The snapshots of a run longer than the series show every row of several intervals when it
// is complete, as the result has it, but for the newest rows.
func TestSnapshotsHaveMergedRows(t *testing.T) {
	const long = (measure.DefaultSeries + 500) * time.Second
	type key struct {
		phase      string
		start, end time.Duration
	}
	keyOf := func(iv *measure.Interval) key { return key{iv.Phase, iv.Start, iv.End} }
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, watch func(Snapshot)) (*Result, error)
	}{
		{"firing", func(t *testing.T, watch func(Snapshot)) (*Result, error) {
			plan := Plan{Schedule: Constant(1), WarmupTime: 10 * time.Second, Measurement: Limits{Time: long}, BatchEvents: 1, Portable: true, Watch: watch}
			return Fire(t.Context(), plan, newFake(Single(), 1, constantly(10*time.Millisecond)))
		}},
		{"reading", func(t *testing.T, watch func(Snapshot)) (*Result, error) {
			plan := ReadPlan{Warmup: 10 * time.Second, Measurement: Limits{Time: long}, Portable: true, Watch: watch}
			return Consume(t.Context(), plan, &tickSource{tick: time.Second})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := map[key]measure.Interval{}
				r, err := tt.run(t, func(s Snapshot) {
					for i := range s.Merged {
						seen[keyOf(&s.Merged[i])] = s.Merged[i]
					}
				})
				assert.OK(t, err)
				merged, missing := 0, 0
				for i := range r.Intervals {
					iv := &r.Intervals[i]
					if iv.Length() <= time.Second {
						continue
					}
					merged++
					got, ok := seen[keyOf(iv)]
					if !ok {
						missing++
						continue
					}
					assert.Must(t, got.Counts == iv.Counts && (got.Service == nil || got.Service.Equal(iv.Service)),
						"the snapshot had %+v of a row, the result has %+v", got.Counts, iv.Counts)
				}
				assert.True(t, merged >= 400 && missing <= 2, "no snapshot had %d of %d merged rows", missing, merged)
			})
		})
	}
}
