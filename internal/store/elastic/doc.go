// Package elastic is the store of a team, in Elasticsearch 7 to 9 or
// OpenSearch: a document a run, and one an interval, in two indices that a
// template describes. One code path serves them all, by plain HTTP and JSON;
// what they say of themselves decides nothing.
//
// It answers for what it returned for being found by the next search, for
// never overwriting another's report, and for saying what is wrong with a
// cluster. It refuses to know what reports mean: queries are answered by the
// same digests and the same filters as everywhere, so that every store answers
// alike.
//
// Its invariant: a finished report's document is written after its intervals,
// so that who finds it finds them.
package elastic
