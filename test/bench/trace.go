package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// traced measures the cost of a trace, with a row per batch, for a run that makes about
// a million batches a second. The file is in a temporary folder, and no row may be
// missing.
func (u *Suite) traced(b testing.TB) {
	const withTrace = "--trace"
	lasts := u.scaled(5 * time.Second)
	run := func(name string, args ...string) contestant {
		args = append([]string{"null://", "--size", "4KiB", "--batch-events", "1", "--for", lasts.String()}, args...)
		return contestant{name, func(ctx context.Context) (sample, error) {
			d, e, err := u.runProgram(ctx, "null, a batch an event, "+name, args...)
			switch {
			case err != nil:
				return nil, err
			case name != withTrace:
			case d.Trace == nil || d.Trace.Dropped > 0 || d.Trace.Rows < d.Totals.Batches:
				return nil, fmt.Errorf("rows are missing: %d batches, trace %+v", d.Totals.Batches, d.Trace)
			}
			return sample{eventsPerS: d.Totals.EventsPS, maxRSS: float64(d.Generator.MaxRSS)}.cpu(e, d.Totals.Acked), nil
		}}
	}
	r := u.alternate(b.Context(), "trace, null://, 4 KiB, a row a batch", run(carronade), run(withTrace, withTrace, filepath.Join(u.dir, "run.parquet")))
	u.addComparison(r, withTrace, carronade, eventsPerS, atLeast(0.85), bound{})
	u.addComparison(r, withTrace, carronade, cpuPerEvent, bound{}, bound{})
	memory := &results{work: r.work + ", " + withTrace, samples: map[string][]sample{carronade: r.samples[withTrace]}, faults: map[string]error{carronade: r.faults[withTrace]}}
	u.addLine(memory, maxRSS, atMost(200<<20), bound{}).Worst = true
}
