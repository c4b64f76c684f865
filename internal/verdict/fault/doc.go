// Package fault has the faults that a run makes itself, and the scores of all faults.
//
// It has the grammar of faults, such as 60s:stop=leader,10s, and that of the moments at which a run
// runs commands. Everything else that makes a fault is up to the run, which knows the processes.
//
// A score is what a fault, and its end, did to a run that went on. The run may have made
// the fault, or a user. The score takes marks on the time axis of a run and the outcomes of its
// batches. It says when the fault was noticed, for how long nothing was acked, when the limit holds
// again, and when the queue was gone; for the whole run, and for each partition or connection. It
// also has what follows from the headroom of the system.
//
// The package does not know protocols, reports or terminals.
//
// Invariants of a score: what was not seen is not a number. A time that was still running when the
// observation ended is a lower bound and says so, and what needs a baseline has no value without a
// usable one.
package fault
