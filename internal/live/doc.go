// Package live shows a run in progress: on a terminal a few lines rewritten in
// place, elsewhere a plain line per interval. It is responsible for what is shown
// and how it is updated. It does not know targets, flags or reports.
// Its invariant: the terminal is left as it was found, even if the run fails. The
// cursor is never hidden and never left within the status, so a killed program
// leaves nothing to restore.
package live
