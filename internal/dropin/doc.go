// Package compat contains the drop-ins for old tools. A drop-in takes a tool's
// command line, runs it as an ordinary workload or as a load of operations on
// topics, and prints the tool's lines. The package is responsible for the old
// tools' flags, defaults, units, output formats and usage errors. It does not send or
// measure: a drop-in turns arguments into a workload or a TopicLoad, and a report and
// the observed events into lines.
//
// The files of a tool begin with its name: heyapm, riemannload, sangrenel, and kafka
// with producer, consumer, share and latency for Kafka's own performance tools. Other
// files have what several tools share. mongoose, with an interpreter for its scenarios,
// has a package of its own below this one.
//
// Its invariants: every number that a drop-in prints is in the report or is computed
// from it. This includes --strict, where the old tool's computation is applied to the
// same data. No argument is dropped without a message. A secret of a command line is in
// no report and in no line.
package dropin
