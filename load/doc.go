// Package load sends events: it decides when they are due (schedules) and which thread
// and lane send them, and records their outcomes (accounting). To fire a batch is to
// hand it to a lane, which writes it. The package does not depend on any protocol,
// file, terminal or flag. It takes its time from the time package, so that it runs
// under testing/synctest.
//
// A run is a value: several may run at once in one process and share only what their
// plans give them. A Mix makes one run of several loads, each with a share of all
// events. A Gate is an allowance of events, for a load with a limited number: items to
// read, or what another run has acked (Plan.Gate, Part.Gate; the run ends with ByFeed).
// A plan without them pays comparisons with nil.
//
// Its invariant: at the end of every run, offered = sent + dropped + unsent and sent =
// acked + failed + unknown, for every phase, and the intervals add up to the phases.
package load
