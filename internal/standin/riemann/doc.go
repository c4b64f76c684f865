// Package riemann answers for Riemann's stand-ins: a small honest server, and
// one that discards.
//
// The honest one takes messages over TCP, TLS, UDP, WebSocket and HTTP, keeps
// the newest event of each host and service in an index until its time to live
// is over, answers queries in the whole query language, and reports of itself in
// events under the names of the real server. The discarding one counts the
// frames of messages and acknowledges them, as fast as this machine can, so
// that the limit of any client can be measured against the same thing.
//
// Where it could be asked how a server behaves, riemann 0.3 was
// (riemann/transport.clj, transport/tcp.clj, transport/udp.clj,
// transport/websockets.clj, index.clj, core.clj, query.g4, query.clj). It has no
// streams but one, which indexes every event.
//
// The package refuses to know who fires at it.
//
// Its invariant: a message is acknowledged in the order in which its connection
// brought it, once, and after all its events are in the index and in the counts.
package riemann
