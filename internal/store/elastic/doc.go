// Package elastic is the store of a team, in Elasticsearch 7 to 9 or
// OpenSearch: one document per run, and one per interval, in two indices that a
// template describes. One code path serves them all, by plain HTTP and JSON;
// their reported versions make no difference.
//
// It guarantees that a stored report is found by the next search and that it
// never overwrites another's report, and it explains what is wrong with a
// cluster. It does not know what reports mean: queries use the same rows and
// filters as every store, so that all stores behave alike.
//
// An APM Server keeps its events in the same kind of cluster. Its indices are looked after
// here too, by the same requests (cluster.go).
//
// Its invariant: a finished report's document is written after its intervals,
// so that a reader that finds it also finds them.
package elastic
