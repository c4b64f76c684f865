// Package riemann holds the bytes of the Riemann protocol: events and messages
// as protocol buffers, the frames they travel in, acks, and events as JSON. It
// answers for writing them, and for reading and bounding what others wrote. It
// refuses to know connections, queries' meaning, indexes and load.
//
// Its invariant: what it writes is what the generated code of the schema would
// have written, fields in the order of their numbers, and no bytes received can
// make it panic, read out of their bounds or take memory out of proportion to
// their number.
//
// The schema is that of com.aphyr.riemann (proto.proto of riemann-java-client),
// frozen for years; the reader's rules are those of riemann-clojure-client,
// codec.clj. Of its corners these are known and left out: State, the old form
// of an event in a message, is skipped as the server does; and a text that is
// present but empty is read as absent.
package riemann
