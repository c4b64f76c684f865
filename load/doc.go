// Package load sends events: when they are due (schedules), which thread and lane send
// them, and what became of them (accounting). To fire a batch is to hand it to a lane,
// which writes it. The package does not depend on any protocol, file, terminal or flag.
// It takes its time from the time package, so that it runs under testing/synctest.
//
// A run is a value: several may run at once in one process and share only what their
// plans give them. Two things exist for such programs, and no carronade command uses
// them: Part, which divides a schedule by a partitioner, such as one by weights
// (Weighted), among runs that send it together; and a Gate, which counts what one run
// got acked and lets another fire no more than that (Plan.Gate; such a run ends with
// ByFeed). A plan without a gate pays a comparison with nil for it.
//
// Its invariant: at the end of every run, offered = sent + dropped + unsent and sent =
// acked + failed + unknown, for every phase, and the intervals add up to the phases.
package load
