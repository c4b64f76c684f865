// Package cli is the command line: commands, flags made from the tables of workloads and
// kinds, help, messages, exit codes and signals. It does not know how an event is sent or how
// a number is computed.
//
// Invariant: the package has no state. A Program is a value, and a function builds the tree of
// commands, so any number of command lines can run in one process. Results go to Out,
// everything else to Err; words.go prints errors and warnings.
package cli
