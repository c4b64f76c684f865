// Package module is the API of our own scenarios: an ES module that imports run, find and the
// others from "carronade". Steps are promises of reports; the loop in loop.go settles them.
// Its TypeScript declarations are made here too: the functions of the module, the settings of
// workloads from their table, and reports from their structs.
//
// The interpreter belongs to one goroutine. A script has no files, no network and no timers, its
// random numbers follow from the seed, and its clock begins at a time that follows from the seed
// and advances while the script waits.
package module
