// Package apm is the target of Elastic APM's intake: requests of intake v2, of
// RUM v2 and v3 and of the v1 of old servers, by HTTP/1.1 or 2, and what a
// server made of each of their events.
//
// A batch is one request, and its events are all that it carries but the
// metadata: transactions, spans, errors, metricsets. A lane is one connection
// (or, with HTTP/2, a proxy or connections that are not kept, one client of
// net/http) with one request in flight, or several where pipelining was asked
// for. Where Elasticsearch stands behind the server, a session counts its
// documents before and after a run; it never changes or deletes any.
//
// It answers for connections, requests, answers and their meaning. It refuses
// to know the bytes of events (internal/wire/apm), schedules, and who reads the
// report.
//
// Its invariant: every batch taken is completed once, by what the server said of
// it and by nothing else: what was written and not answered is unknown.
//
// Protocol facts are from Elastic's documentation of the events intake API and
// the source of apm-server 9.6; those of v1 from that of apm-server 6.
package apm
