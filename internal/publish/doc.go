// Package publish tells others about a run while it goes on: Prometheus, which
// asks; Graphite and OTLP collectors, which are told once an interval. It
// answers for names and forms of what is told, and for never holding up a run:
// what a slow or absent collector does not take within a bound is dropped,
// counted and warned about. It refuses to know protocols of targets, and keeps
// nothing of a run that has ended but its last figures.
//
// Its invariant: counters told only grow within a run, and equal the report's
// at its end.
package publish
