// Package behavior is what every stand-in can do besides its protocol: the flags that all
// have, connections that answer late or stall, answers that are errors at random, a queue
// with servers of a known capacity, bytes that are discarded without being read, and a file
// of when each request was received and answered.
//
// It knows no protocol and no stand-in, so that all of this is the same for all of them.
// Its invariants:
//
//   - A flag shows values in the form in which they may be given, and never a secret.
//   - Bytes arrive unaltered and in order, however late.
//   - A Queue is a pure function of the times of arrivals, with a seeded generator: it reads
//     no clock and never waits. Events are served in the order of their arrival, and the
//     same arrivals with the same options are served at the same times.
//   - Exactly the reported number of bytes is discarded, in order with the bytes that are
//     read, inside the kernel where possible: a sink costs almost nothing beside the
//     generator that it measures.
//   - Recorded times are those of the connections themselves, below any wrapper that delays
//     answers. If nothing is recorded, nothing is wrapped.
package behavior
