// Package cli is the command line: commands, flags made from the tables of
// workloads and kinds, help, words to people, exit codes and signals. It
// refuses to know how an event is sent and how a number is computed.
//
// Its invariant: it has no state of its own. A Program is a value and the tree
// of commands is built by a function, so that any number of command lines run
// in one process. Results go to Out, everything else to Err; errors and what to
// beware of are said by words.go.
package cli
