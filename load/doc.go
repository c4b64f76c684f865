// Package load fires events: when (schedules), by whom (threads and lanes),
// and what became of them (accounting). It knows no protocol, no file, no
// terminal and no flag. Its time is what the time package says, so that it
// runs under testing/synctest.
//
// Its invariant: at the end of every run, offered = sent + dropped + unsent
// and sent = acked + failed + unknown, for every phase, and the intervals sum
// to the phases.
package load
