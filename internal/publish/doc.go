// Package publish exports the metrics of a run in progress: to Prometheus, which
// scrapes them, and to Graphite and OTLP collectors once per interval. It is
// responsible for the names and formats of the metrics, and for never delaying a
// run: if a collector is too slow or absent, data beyond a limit is dropped,
// counted and reported in a warning. The package does not know the targets'
// protocols, and keeps only the last metrics of a run that has ended.
// Its invariant: counters only grow within a run, and equal the report's at its
// end.
package publish
