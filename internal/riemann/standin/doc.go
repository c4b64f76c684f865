// Package standin contains the stand-ins for Riemann: a small server with an
// index, and one that discards.
//
// The indexing server accepts messages over TCP, TLS, UDP, WebSocket and HTTP,
// keeps the newest event of each host and service in an index until its time to
// live is over, answers queries in the full query language, and reports on itself
// in events under the names of the real server. The discarding server counts the
// frames of messages and acknowledges them as fast as this machine can, so that
// the limit of any client can be measured against the same server.
//
// The behavior is that of riemann 0.3 (riemann/transport.clj, transport/tcp.clj,
// transport/udp.clj, transport/websockets.clj, index.clj, core.clj, query.g4,
// query.clj). Its only stream indexes every event.
//
// The package knows nothing about its clients.
//
// Its invariant: each message is acknowledged once, in the order in which its
// connection delivered it, and after all its events are in the index and in the
// counts.
package standin
