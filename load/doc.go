// Package load fires events: when (schedules), by whom (threads and lanes),
// and what became of them (accounting). It knows no protocol, no file, no
// terminal and no flag. Its time is what the time package says, so that it
// runs under testing/synctest.
//
// A run is a value: several go on at once in one process and share nothing but
// what they are given. Two things to give them in common are for programs of
// one's own, and no command of carronade's has them: Part, which divides a
// schedule by a partitioner, such as one by weights (Weighted), among runs that fire it
// together; and a Gate, which is fed by what one run got acked and lets another
// fire no more than that (Plan.Gate; ByFeed is such a run's end). A plan without
// a gate pays a comparison with nil for it.
//
// Its invariant: at the end of every run, offered = sent + dropped + unsent
// and sent = acked + failed + unknown, for every phase, and the intervals sum
// to the phases.
package load
