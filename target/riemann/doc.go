// Package riemann fires events at Riemann and asks what became of them. It
// answers for the protocol's transports (TCP, TLS, UDP, WebSocket, HTTP), the
// make-up of events, connections that break, and what the server says of
// itself. It refuses to know schedules, reports, flags and terminals.
//
// Messages are made of events encoded ahead and go out many in one write; the
// answers of a connection come in the order of its messages, so that they are
// counted and not looked at one by one.
//
// Its invariant: every batch taken is completed exactly once, and an event is
// called failed only when the server certainly did not take it in.
package riemann
