// Package wire has the bytes of OTLP: the messages of export requests and their answers in
// protobuf, and the JSON form of requests. It knows which messages and fields there are
// (schema.go), and nothing about connections or runs.
//
// Its invariant: a request that Check accepts is one that the OpenTelemetry Collector decodes,
// and with the same number of events.
//
// Facts are from opentelemetry-proto 1.10, the OTLP specification 1.10, and the decoder of the
// Collector's pdata 1.71.
package wire
