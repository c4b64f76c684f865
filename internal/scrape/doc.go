// Package scrape answers for what a system reports of itself while it is under
// load: the variables of a Go program (expvar), metrics in the text format of
// Prometheus, and the pauses in a JVM's unified garbage collection log.
//
// It refuses to know what the names mean, and it starts nothing.
//
// Its invariants: a source costs the system at most one question an interval
// and this process at most MostBytes of memory and MostFigures figures, however
// much the system has to tell; and a source that cannot be read is an error of
// that source and never of the run.
package scrape
