// Package standin is what all stand-ins, the embedded servers for the demo, for calibration
// and for tests, share. It runs one until it is stopped (Server, Main), also in a child
// process (Spawn, Hook), and has what every one can do besides its protocol: the flags that
// all have, connections that answer late or stall, answers that are errors at random, a
// queue with servers of a known capacity, bytes that are discarded without being read,
// connections from their acceptance to their end (Conns), those of servers that discard (Skim,
// RingServers), and a file of when each request was received and answered. Each stand-in is a
// package below.
//
// It knows no protocol and no stand-in, so that all of this is the same for all of them; and
// neither it nor a stand-in knows its clients: they import no package of the engine and do
// not know what a run is. Its invariants:
//
//   - A child never outlives the process that spawned it.
//   - A flag shows values in the form in which they may be given, and never a secret.
//   - Bytes arrive unaltered and in order, however late.
//   - A Queue is a pure function of the times of arrivals, with a seeded generator: it reads
//     no clock and never waits. Events are served in the order of their arrival, and the
//     same arrivals with the same options are served at the same times.
//   - Exactly the reported number of bytes is discarded, in order with the bytes that are
//     read, inside the kernel where possible: a sink costs almost nothing next to the
//     generator that it measures.
//   - A server that discards reads nothing from a client that does not read its answers.
//   - Recorded times are those of the connections themselves, below any wrapper that delays
//     answers. If nothing is recorded, nothing is wrapped.
package standin
