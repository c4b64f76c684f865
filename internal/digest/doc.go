// Package digest is a report seen as one flat row: named fields with typed
// values, made from the document and from nothing else. Lists, filters,
// groups, comparisons and stores speak of reports in these names: the settings
// of the workload by their flags' names, what was measured, labels, the system
// under test and the host. It answers for the names, their types, which of
// them are independent variables, their aliases, and for filters over them.
// It refuses to know where rows are kept and what is concluded from them.
//
// Its invariant: Of is a pure function, so that a row made today from a kept
// document equals the one that was kept with it.
package digest
