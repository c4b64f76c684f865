// Package apm answers for a stand-in of Elastic's APM Server: it takes intake
// v2, RUM v2 and v3 and the documents of v1, judges them event by event, answers
// as the real one does, counts, and on request writes documents to
// Elasticsearch or OpenSearch. With Discard it only answers, as fast as can be.
//
// It refuses to know who fires at it. It judges by the JSON Schemas that
// Elastic publishes with its decoder, and not by the decoder itself, which
// would add 9.7 MB to a program of 24.3; tests hold the two together.
//
// Its invariant: what it answered as accepted it counted first, and accepted =
// waiting + indexed + failed + lost where it indexes.
package apm
