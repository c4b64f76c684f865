// Package workload is one document for everything that says what to run:
// flags, a file, and the settings in a report. It parses and checks them, fills
// in defaults, and makes the load.Plan for the engine and the target.Spec for
// the target. It does not know how a run is executed or shown.
//
// Its invariant: one table. A setting has the same name as a flag, as a key of
// a file, in the schema, in docs/workload.md and in a report; its text means
// the same in each place, and it is checked by the same function.
package workload
