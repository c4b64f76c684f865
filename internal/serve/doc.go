// Package serve is the server of a team: jobs of several people wait in one queue for each system
// under test, on one load machine. It has two ports, text for sessions of the shell and HTTP for
// the API and the page.
//
// Its invariants: a request without a valid token is refused, except in a text session from this
// machine; what a job may do is decided by Rules, which the job's own process reads and obeys; the
// server itself opens only files in the folder of jobs, through os.Root.
package serve
