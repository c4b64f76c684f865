// Package fault has the faults that a run makes itself, and the scores of all faults.
//
// It has the grammar of faults, such as 60s:stop=leader,10s. It has the grammar of the moments at
// which a run runs commands. It has the relay, which delays the connections of one run. A relay is a
// process of its own, through which the run connects to its target; it passes bytes on in both
// directions, and delays them on command. Everything else that makes a fault is up to the run, which
// knows the processes.
//
// A score is what a fault, and its end, did to a run that went on meanwhile. The run may have made
// the fault, or a user. The score takes marks on the time axis of a run and the outcomes of its
// batches. It says when the fault was noticed, for how long nothing was acked, when the limit holds
// again, and when the queue was gone; for the whole run, and for each partition or connection. It
// also has what follows from the headroom of the system.
//
// The package does not know protocols, reports or terminals, and does not look at the bytes. A relay
// drops nothing: on a connection of TCP a lost packet is a delay, whose length only the kernel's TCP
// decides.
//
// Invariants of a score: what was not seen is not a number. A time that was still running when the
// observation ended is a lower bound and says so, and what needs a baseline has no value without a
// usable one. Invariants of a relay: the bytes of a direction arrive complete and in their order,
// whatever the delay was when they were sent; only the process that started a relay can connect
// through it; and a relay ends with that process.
package fault

// # How a relay works
//
// The run connects to the relay and sends one line, TOKEN HOST:PORT. The relay connects there, and
// answers with one line: "ok", or the class of the error and its text. Then it passes bytes on.
//
// The token and the delays come over the relay's standard input, a line of JSON each, and its end
// ends the relay. Each has a number, and so does its answer on the standard output: one that comes too
// late is not taken for that of the next. With its answers the relay says by how much it was late.
