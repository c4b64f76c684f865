// Package standin is a small OTLP receiver. It takes export requests over HTTP and gRPC, decodes and
// checks them as the OpenTelemetry Collector does, counts their events by signal, and passes them on
// to nothing. With --discard it reads no request.
//
// Its invariant: a request is counted as accepted exactly if its answer says so.
package standin
