// Package permit decides what a job that came over the network may do: which commands it may
// run, which files it may name, which systems it may load, and which programs it may start. The
// server gives the rules to each job's process in its environment, and the command line of that
// process asks here before it does anything.
//
// Its invariant: what the rules do not allow by name is refused. A new setting whose value is a
// file, an address or a command is recognized by the word for its value in help.
package permit
