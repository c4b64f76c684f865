// Package apm is the target of Elastic APM's intake. It sends requests of intake
// v2, of RUM v2 and v3 and of v1 for old servers, by HTTP/1.1 or 2, and reads
// what the server did with their events.
//
// A batch is one request. Its events are its content without the metadata:
// transactions, spans, errors, metricsets, logs. A lane is one connection with one
// request in flight, or several with pipelining. With HTTP/2, a proxy or without
// keep-alive it is one client of net/http instead. If the server writes to
// Elasticsearch, a session can count its documents before and after a run. It
// never changes or deletes any.
//
// The package covers connections, requests, answers and their meaning. It does
// not know the bytes of events (internal/apm/wire), schedules or reports.
//
// Its invariant: every accepted batch is completed once, and only by what the
// server said about it: what was written and not answered is unknown.
//
// Protocol facts are from Elastic's documentation of the events intake API and
// the source of apm-server 9.6; those of v1 are from the source of apm-server 6.
package apm
