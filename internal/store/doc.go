// Package store is the stored reports: it puts, gets, finds and lists them, and makes of each
// one flat row of named fields with typed values. Lists, filters, groups, comparisons and stores
// refer to reports by these names: the settings of the workload by their flags' names, what was
// measured, labels, the system under test and the host.
//
// A Store has two implementations, SQLite for one person (store/sqlite) and Elasticsearch or
// OpenSearch for a team (store/elastic). Both pass the suite in testkit/reporttest and behave
// alike. The package defines what they share: ids and references to them; the fields of a row,
// their types, which of them are independent variables, their aliases, and filters on them; how a
// row is encoded (they call an encoded row a digest); and the queue through which a run stores its
// intervals. It does not know where reports are, and what is concluded from their numbers.
//
// Its invariants: a report for which Put or Finish returned survives whatever happens to the
// process afterwards, and a damaged store is never overwritten. RowOf is a pure function, so that
// a row made today from a stored document equals the one that was stored with it.
package store
