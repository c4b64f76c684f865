package run

import (
	"time"

	"carronade/load"
)

// mostKept is how many unread batches the ledger may remember: at about 14 bytes each they
// take a quarter of its memory.
const mostKept = 1 << 20

// readAfter reports whether a scheduled run reads back after it is over, not concurrently.
// Reading afterwards does not disturb the measurement, and it finds the final state: an event
// that was read and then lost with a disk was not delivered. A run with too many batches to
// remember, or without an end, reads concurrently.
func readAfter(plan *load.Plan, streams int) bool {
	return mostBatches(plan, streams) <= mostKept
}

// mostBatches is an upper estimate of the batches of a scheduled run: a batch is sent when its
// linger is over or when it is full, and a full one has some dozens of events.
func mostBatches(plan *load.Plan, streams int) uint64 {
	const full = 64
	end := plan.Schedule.End()
	if plan.Measurement.Time > 0 {
		end = min(end, plan.WarmupTime+plan.Measurement.Time)
	}
	events := ^uint64(0)
	if end != load.Never {
		events = plan.Schedule.Count(end)
	}
	if plan.Measurement.Events > 0 {
		events = min(events, plan.WarmupEvents+plan.Measurement.Events)
	}
	switch {
	case plan.BatchEvents > 0:
		return events / uint64(plan.BatchEvents)
	case plan.Linger <= 0 || end == load.Never:
		return events
	}
	return min(events, events/full+uint64(streams)*uint64(end/max(plan.Linger, time.Microsecond)+1))
}
