// Package workload is one document for everything that says what to run:
// flags, a file, and the settings that a report repeats. It answers for
// parsing, defaults, checking, and for handing the engine its load.Plan and
// the target its target.Spec. It refuses to know how a run is done and how
// anything is shown.
//
// Its invariant: one table. A setting has the same name as a flag, as a key of
// a file, in the schema, in docs/workload.md and in a report; its text means
// the same in each place, and it is checked by the same function.
package workload
