// Package workload is one document for everything that says what to run:
// flags, a file, and the settings in a report. It parses and checks them, fills
// in defaults, and makes the load.Plan for the engine and the protocol.Spec for
// the target. It does not know how a run is executed or shown.
//
// Its invariant: one table. A setting has the same name as a flag, as a key of
// a file, in the schema, in docs/workload.md and in a report; its text means
// the same in each place, and it is checked by the same function.
//
// A document may have parts (Document.Parts, in a file a list of mappings under the key
// "parts"): several loads that run at the same time as one, each with a share of all
// events by its setting "weight". A part has the settings of its kind of target, "op",
// "weight" and "name"; it inherits those of the document. The document has what
// applies to the whole: rate or concurrency, limits, batches, output. Resolve returns one
// Workload, and a run of it makes one report with a section for each part. Scripts and
// drop-ins build the same Document.
package workload
