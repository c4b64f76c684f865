package run

import (
	"time"

	"carronade/load"
)

// mostKept is how many batches the ledger keeps in mind unread: at some 14 bytes
// each they take a quarter of its memory.
const mostKept = 1 << 20

// readAfter reports whether what a scheduled run fires is read back when it is
// over, and not as it goes. Reading afterwards costs nothing while times are
// measured, and it finds what is there in the end: an event that was read and
// then lost with a disk was not delivered. A run that fires more batches than can
// be kept in mind, or goes on until somebody stops it, is read as it goes.
func readAfter(plan *load.Plan, streams int) bool {
	return mostBatches(plan, streams) <= mostKept
}

// mostBatches estimates from above how many batches a scheduled run fires: a batch is
// fired when its linger is over or when it is full, and a full one holds some
// dozens of events.
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
