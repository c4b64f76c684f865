// Package store stores reports: it puts, gets, finds and lists them. It has two
// implementations, SQLite for one person (store/sqlite) and Elasticsearch or
// OpenSearch for a team (store/elastic). Both pass the suite in testkit/reporttest
// and behave alike. The package defines ids and references to them, and
// guarantees that no stored report is lost. It does not know what the numbers
// mean.
//
// Its invariant: a report for which Put or Finish returned survives whatever
// happens to the process afterwards, and a damaged store is never overwritten.
package store
