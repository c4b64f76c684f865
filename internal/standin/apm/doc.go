// Package apm answers for a stand-in of Elastic's APM Server: it takes intake
// v2, RUM v2 and v3 and the documents of v1, judges them event by event, answers
// as the real one does, counts, and on request writes documents to
// Elasticsearch or OpenSearch. With Discard it only answers, as fast as can be.
//
// It refuses to know who fires at it. It judges by rules of its own
// (rules/*.txt), which say what the JSON Schemas that Elastic publishes and its
// decoder say; tests hold them to both. The decoder itself would add 9.7 MB to a
// program of 24.3.
//
// Its invariant: what it answered as accepted it counted first, and accepted =
// waiting + indexed + failed + lost where it indexes.
package apm
