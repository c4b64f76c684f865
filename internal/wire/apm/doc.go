// Package apm holds the bytes of Elastic APM's intake: the lines of intake v2,
// RUM v2 and RUM v3 and the documents of v1 as bodies encoded ahead, whose ids
// and times are written anew in place for every batch, also inside gzip; the
// rewriting of recorded lines; and the reading of HTTP/1.1 answers.
//
// It refuses to know connections, servers, schedules and what became of a
// batch.
//
// Its invariant: a body is a function of (make-up, seed, n), its ids of (run,
// batch, place in the body); nothing that is stamped changes a length, and a
// gzip body always inflates to exactly the plain one.
//
// Protocol facts are from the specification that Elastic publishes with its
// decoder (github.com/elastic/apm-data, input/elasticapm/docs/spec), for v1
// from the schemas of apm-server 6 (docs/spec), for HTTP from RFC 9112, for
// gzip and deflate from RFC 1952 and RFC 1951.
package apm
