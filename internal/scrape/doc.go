// Package scrape reads what a system reports about itself while it is under load:
// the variables of a Go program (expvar), metrics in the text format of
// Prometheus, and the pauses in a JVM's unified garbage collection log.
//
// It does not know the meaning of names, and it starts no process.
//
// Its invariants: a source costs the system at most one request per interval, and
// this process at most MostBytes of memory and MostFigures figures, however much
// the system reports; and a source that cannot be read is an error of that source
// and never of the run.
package scrape
