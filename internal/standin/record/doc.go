// Package record writes down when a stand-in had each request whole and when it
// answered it, so that a load generator's times can be compared with what really
// happened.
//
// It answers for the file, and for times that are those of the connections
// themselves, whatever delays answers on the way to them. It refuses to know
// what is spoken on the connections: a server says what it took (Conn.Took), and
// when all of that is answered (Conn.Answered).
//
// Its invariant: where nothing is recorded nothing is wrapped, and a server runs
// as it does without this package.
package record
