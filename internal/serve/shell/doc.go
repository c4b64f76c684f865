// Package shell is an interactive session: it reads lines of commands and writes
// their answers, on a terminal or a connection. The language is that of the shell of
// hey-apm (2018), with commands for Kafka and Riemann and carronade's own commands.
//
// It does not know who runs commands and jobs: a Queue takes the jobs, and a function
// runs the commands that generate no load. It knows no flags of commands.
//
// Its invariants: a password is in no answer, no command line and no job, only in a
// file with mode 0600; text of others reaches a terminal only without control
// characters; when Serve returns, none of its goroutines is left, and the jobs that
// it submitted go on.
package shell
