// Package live is a run in progress as others see it and mark it; the page in a browser is package
// web. A Watcher shows it in the user's terminal: a few lines rewritten in place, elsewhere a plain
// line per interval. An Exporter exports its metrics: to Prometheus, which scrapes them, and to
// Graphite and OTLP collectors once per interval. A Socket, named by the id of the run's report, takes
// requests of other processes of the same user to put a mark on the run's time axis. The package is
// responsible for what is shown, for the names and formats of the metrics, and for never delaying a
// run: if a collector is too slow or absent, data beyond a limit is dropped, counted and reported in
// a warning. It does not know targets' protocols, flags, reports, or what a mark means.
//
// Its invariants: the terminal is left as it was found, even if the run fails. The cursor is never
// hidden and never left within the status, so a killed program leaves nothing to restore. Counters
// of metrics only grow within a run, and equal the report's at its end; the last ones stay when the
// run has ended. Only the user who started a run can connect to its socket, and the socket goes away
// with the run, or with a later one if the run was killed. The users of a server run as one user of
// this machine: an owner finds the runs of that name and no others.
package live
