// Package conn has the connections to targets. It makes them: the options of connections,
// the hosts of a URL, TCP with the requested buffers, TLS with the given certificates, and
// messages about failures with advice. And it has the pipelined connection under a lane:
// connecting again after a loss, the window of requests in flight, writing what the lane has
// queued, the deadline of answers and their reading, closing, and buffers that are borrowed
// while they are in use. It does not depend on what the bytes mean, on logins, or on what
// becomes of the requests of a lost connection.
//
// Its invariants: unless configured otherwise, a certificate is verified, chain and name.
// One goroutine at a time writes what is queued, in order; nothing is written after the end.
// A connection that is idle has no buffer of its own, unless a goroutine waits for its
// answers.
package conn
