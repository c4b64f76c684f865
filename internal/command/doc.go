// Package command has the parts that all commands share (flags that are settings of a workload,
// errors with hints, exit codes, the console, files), and two groups of commands.
//
// Those on stored reports are of one or of several (list, show, log, export, import, delete, open,
// cite, push, pull, check, table, explain), or compare reports (collate, compare and verify). They
// turn references and filters into reports or into questions to package judge, and reports and
// answers into output and exit codes. They do not know how a store works, what the numbers mean, or
// what makes two reports comparable.
//
// Those that know kinds of target are Topics, of Kafka, which creates, lists, describes, deletes
// and reads topics as counted and timed operations; Query, of Riemann, which queries a server's
// index in the server's own query language; and Profile, which fits a workload to a sample of real
// traffic. They turn arguments into work for the target and the result into text or JSON, and do
// not know the protocols.
//
// Invariant: only reports that the user named are deleted or moved.
package command
