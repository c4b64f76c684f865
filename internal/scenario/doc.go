// Package scenario runs a script that composes steps: runs, searches and what else a Runner
// offers, in order or side by side.
//
// The script runs in a child process of ours, because an interpreter can stop neither a regular
// expression that backtracks nor a large allocation. The child only composes: it asks for steps
// over a pipe, in JSON lines (protocol.go), and the parent runs them. So a step costs what it
// costs without a script, and its report is kept whatever becomes of the child.
//
// A Language is the API that a script sees. It runs in the child and knows the parent as a Host.
// Run is the parent's side, and knows steps as what a Runner starts.
//
// Our own API is an ES module (module*.go): scripts import run, find and the others from
// "carronade". Steps are promises of reports, which a loop settles (module_loop.go). Its
// TypeScript declarations are made here too (module_typings.go): the functions of the module, the
// settings of workloads from their table, and reports from their structs. Drop-ins have languages
// of their own.
//
// The interpreter belongs to one goroutine. A script has no files, no network and no timers, its
// random numbers follow from the seed, and its clock begins at a time that follows from the seed
// and advances while the script waits.
package scenario
