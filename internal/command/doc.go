// Package command is what commands are made of, whoever's they are: flags that
// are settings of a workload, errors with their way out, exit codes, and the
// console that a command speaks to. It answers for nothing that is said; it
// refuses to know which commands there are and which protocols.
//
// The packages below it are commands that only one protocol has (query, topics),
// and those on stored reports (reports, judging).
package command
