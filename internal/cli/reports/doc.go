// Package reports has the commands on stored reports: those on one or several (list, show, log, export,
// import, delete, open, cite, push, pull, check, table, explain), and those that compare (collate,
// compare, verify).
//
// They turn references and filters into reports or into questions to package judge, and reports and
// answers into output and exit codes. They do not know how a store works, what the numbers mean, or
// what makes two reports comparable.
//
// Invariant: only reports that the user named are deleted or moved.
package reports
