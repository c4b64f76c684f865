// Package compat contains the drop-ins for old tools. A drop-in takes a tool's
// command line, runs it as an ordinary workload or as a load of operations on
// topics, and prints the tool's lines. The package is responsible for the old
// tools' flags, defaults, units, output formats and usage errors. The tools that
// load Kafka have packages of their own below this one, which has hey-apm, riemann-load
// and what all share. The package does not send or measure: a drop-in
// turns arguments into a workload or a TopicLoad, and a report and the observed events
// into lines.
// Its invariant: every number that a drop-in prints is in the report or is computed
// from it. This includes --strict, where the old tool's computation is applied to
// the same data.
package compat
