// Package wire encodes and decodes the Riemann protocol: events and messages
// as protocol buffers, their frames, acks, and events as JSON. When it decodes,
// it bounds the input. It does not know connections, the meaning of queries,
// indexes or load.
//
// Its invariant: it writes the same bytes as the generated code of the schema,
// with fields in the order of their numbers; and no received bytes can make it
// panic, read out of bounds or allocate memory out of proportion to their number.
//
// The schema is that of com.aphyr.riemann (proto.proto of riemann-java-client),
// which has not changed for years. The decoding rules are those of
// riemann-clojure-client, codec.clj, with two known differences: State, the old
// form of an event in a message, is skipped, as by the server; and a text that is
// present but empty is read as absent.
package wire
