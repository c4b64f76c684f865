// Package digest is a report as one flat row: named fields with typed values,
// made only from the document. Lists, filters, groups, comparisons and stores
// refer to reports by these names: the settings of the workload by their flags'
// names, what was measured, labels, the system under test and the host. It
// defines the names, their types, which of them are independent variables,
// their aliases, and filters on them. It does not know where rows are stored
// and what is concluded from them.
//
// Its invariant: Of is a pure function, so that a row made today from a stored
// document equals the one that was stored with it.
package digest
