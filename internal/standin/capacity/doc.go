// Package capacity is a queueing server of a known capacity: it computes when the
// events of a stand-in are served, and which find the queue full.
//
// A Server is a pure function of the times of arrivals, with a seeded generator: it
// reads no clock and never waits. Its invariants: events are served in the order of
// their arrival; the same arrivals with the same options are served at the same
// times.
package capacity
