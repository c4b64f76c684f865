// Package riemann sends events to Riemann and reads back what the server did
// with them. It covers the protocol's transports (TCP, TLS, UDP, WebSocket,
// HTTP), the content of events, broken connections, and the server's metrics
// about itself. It does not depend on schedules, reports, flags or terminals.
//
// Messages consist of events that were encoded ahead, and one write sends many
// of them. The answers on a connection come in the order of its messages, so
// they are counted and not examined one by one.
//
// Its invariant: every accepted batch is completed exactly once, and an event
// counts as failed only when the server certainly did not accept it.
package riemann
