// Package load sends events: it decides when they are due (schedules) and which thread
// and lane send them, and records their outcomes (accounting). To fire a batch is to
// hand it to a lane, which writes it. The package does not depend on any protocol,
// file, terminal or flag. It takes its time from the time package, so that it runs
// under testing/synctest.
//
// A run is a value: several may run at once in one process and share only what their
// plans give them. Two features are for such programs, and no carronade command uses
// them. Part divides a schedule among several runs by a partitioner, such as one by
// weights (Weighted). A Gate counts the acked events of one run, and another run
// fires at most as many (Plan.Gate; such a run ends with ByFeed). For a plan without
// a gate this costs a comparison with nil.
//
// Its invariant: at the end of every run, offered = sent + dropped + unsent and sent =
// acked + failed + unknown, for every phase, and the intervals add up to the phases.
package load
