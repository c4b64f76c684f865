// Package live shows a run in progress: on a terminal a few lines rewritten in
// place, elsewhere a plain line an interval. It answers for what is shown and
// how it moves, and refuses to know targets, flags and the report.
//
// Its invariant: whatever happens to the run, the terminal is left as it was
// found. The cursor is never hidden and never left inside the status, so even
// a program that is killed leaves nothing to restore.
package live
