// Package command has the parts that commands are made of: flags that are settings of a
// workload, errors with hints, exit codes, and the console. It does not know which commands
// and protocols there are.
//
// The packages below it are commands that only one protocol has (query, topics), and those on
// stored reports (reports, judging).
package command
