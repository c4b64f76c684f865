// Package command has the common parts of commands: flags that are settings of a workload,
// errors with hints, exit codes, and the console. It does not know the commands and protocols.
//
// The packages below it are commands that know kinds of target (query, topics, profile), and those
// on stored reports (reports).
package command
