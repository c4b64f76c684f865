package run

import (
	"time"

	"carronade/load"
)

// mostKept is how many shots the ledger keeps in mind unread: at some 14 bytes
// each they take a quarter of its memory.
const mostKept = 1 << 20

// readAfter reports whether what a scheduled run fires is read back when it is
// over, and not as it goes. Reading afterwards costs nothing while times are
// measured, and it finds what is there in the end: an event that was read and
// then lost with a disk was not delivered. A run that fires more shots than can
// be kept in mind, or goes on until somebody stops it, is read as it goes.
func readAfter(plan *load.Plan, stripes int) bool {
	return mostShots(plan, stripes) <= mostKept
}

// mostShots estimates from above how many shots a scheduled run fires: a shot is
// fired when its linger is over or when it is full, and a full one holds some
// dozens of events.
func mostShots(plan *load.Plan, stripes int) uint64 {
	const full = 64
	end := plan.Schedule.End()
	if plan.Hold.Time > 0 {
		end = min(end, plan.WarmupTime+plan.Hold.Time)
	}
	events := ^uint64(0)
	if end != load.Never {
		events = plan.Schedule.Count(end)
	}
	if plan.Hold.Events > 0 {
		events = min(events, plan.WarmupEvents+plan.Hold.Events)
	}
	switch {
	case plan.EventsPerShot > 0:
		return events / uint64(plan.EventsPerShot)
	case plan.Linger <= 0 || end == load.Never:
		return events
	}
	return min(events, events/full+uint64(stripes)*uint64(end/max(plan.Linger, time.Microsecond)+1))
}
