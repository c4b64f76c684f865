// Package store keeps reports: puts them, gets them, finds and lists them. Two
// implementations stand below it, SQLite for one person (store/sqlite) and
// Elasticsearch or OpenSearch for a team (store/elastic); both pass the suite
// in store/storetest and answer alike. It answers for ids and references to
// them, for never losing what was kept, and refuses to know what the numbers
// mean.
//
// Its invariant: a report that Put or Finish returned for is there whatever
// happens to the process afterwards, and what is broken is never overwritten.
package store
