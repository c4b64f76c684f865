// Package dropin has what all drop-ins for old tools share; each tool has a package below
// it. A drop-in takes a tool's command line, runs it as an ordinary workload or as a load
// of operations on topics, and prints the tool's lines. It is responsible for the old
// tool's flags, defaults, units, output formats and usage errors. It does not send or
// measure: it turns arguments into a workload or a TopicLoad, and a report and the
// observed events into lines.
//
// Its invariants: every number that a drop-in prints is in the report or is computed
// from it. This includes --strict, where the old tool's computation is applied to the
// same data. No argument is dropped without a message. A secret of a command line is in
// no report and in no line.
package dropin
