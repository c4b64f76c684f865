// Package record writes to a file when a stand-in had received each request
// completely and when it answered it, so that a load generator's times can be
// compared with the true ones.
//
// The times are those of the connections themselves, below any wrapper that
// delays answers. The package knows no protocol: a server reports each request
// that it received (Conn.Received), and when all of them are answered
// (Conn.Answered).
//
// Its invariant: if nothing is recorded, nothing is wrapped, and a server runs as
// it does without this package.
package record
