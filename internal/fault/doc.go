// Package fault has the faults that a run makes itself: their grammar, such as 60s:stop=leader,10s,
// that of the moments at which a run runs commands, and the relay, which delays the connections of
// one run. A relay is a process of its own, through which the run connects to its target; it passes
// bytes on in both directions, and delays them on command. Everything else that makes a fault is up
// to the run, which knows the processes.
//
// It does not know protocols, and does not look at the bytes. A relay drops nothing: on a connection
// of TCP a lost packet is a delay, whose length only the kernel's TCP decides.
//
// Invariants: the bytes of a direction arrive complete and in their order, whatever the delay was
// when they were sent; only the process that started a relay can connect through it; and a relay
// ends with that process.
package fault

// # How a relay works
//
// The run connects to the relay and sends one line, TOKEN HOST:PORT. The relay connects there, and
// answers with one line: "ok", or the class of the error and its text. Then it passes bytes on.
//
// The token and the delays come over the relay's standard input, a line of JSON each, and its end
// ends the relay. Each has a number, and so does its answer on the standard output: one that comes too
// late is not taken for that of the next. With its answers the relay says by how much it was late.
