// Package otlp is the target of OTLP, the protocol by which OpenTelemetry's libraries and Collectors
// pass on traces, metrics and logs: over HTTP with protobuf, and over gRPC.
//
// An event is a span, a data point or a log record. A batch is one export request. A lane is one
// connection: over HTTP with one request in flight or several in a row, over gRPC with one or more
// streams. Requests are encoded before the run; times and ids in them are fresh each time.
//
// The package covers settings, the content of requests, and what answers mean. It does not know the
// bytes of messages (internal/otlp/wire) and frames (internal/conn/framing), connections of HTTP/1.1
// (internal/conn/web), schedules or reports.
//
// Its invariant: every accepted batch is completed once, and only by what the server said about it:
// what was written and not answered is unknown.
package otlp
