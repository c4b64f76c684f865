// Package compat holds the drop-ins for old tools: it takes
// their command lines, runs them as workloads like any other, or as loads of
// operations on topics, and prints their lines. It answers for the old tools'
// flags, defaults, units, forms of output and usage errors, each tool in a
// directory of its own; what several share is in jopt and kafkaprops. It refuses
// to know how to fire or to measure: a drop-in makes a workload, or a TopicLoad,
// of arguments, and lines of a report and of what it saw meanwhile.
//
// Its invariant: every number that a drop-in prints is one that stands in the
// report, or is computed from what stands there; with --strict, too, where the
// old tool's own way of computing it is used on the same data.
package compat
