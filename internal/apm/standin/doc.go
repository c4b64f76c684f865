// Package standin is a stand-in for Elastic's APM Server. It accepts intake v2, RUM
// v2 and v3 and the documents of v1, validates them event by event, answers as
// the real server does, counts, and on request writes documents to Elasticsearch
// or OpenSearch. With Discard it only answers, as fast as possible.
//
// It knows nothing about its clients. It validates by its own rules
// (rules/*.txt), which say the same as the JSON Schemas that Elastic publishes
// and as Elastic's decoder; tests compare them with both.
// docs/decisions.md has the reasons.
//
// Its invariant: it counts an event before it answers that the event is
// accepted, and accepted = waiting + indexed + failed + lost where it indexes.
package standin
