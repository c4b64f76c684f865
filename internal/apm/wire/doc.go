// Package wire encodes and decodes the bytes of Elastic APM's intake. It encodes
// the lines of intake v2, RUM v2 and RUM v3 and the documents of v1 ahead, as
// bodies whose ids and times are overwritten in place for every batch, also
// inside gzip. It replays recorded lines, and reads HTTP/1.1 answers.
//
// It does not know connections, servers, schedules or the outcome of a batch.
//
// Its invariant: a body is a function of (make-up, seed, n), its ids of (run,
// batch, place in the body); stamping never changes a length, and a gzip body
// always inflates to exactly the plain one.
//
// Protocol facts are from the specification that Elastic publishes with its
// decoder (github.com/elastic/apm-data, input/elasticapm/docs/spec), for v1
// from the schemas of apm-server 6 (docs/spec), for HTTP from RFC 9112, for
// gzip and deflate from RFC 1952 and RFC 1951.
package wire
