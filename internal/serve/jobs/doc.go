// Package jobs is the durable queue of a server on one load machine that several
// people use. A job is one command line of this program, which runs as a child
// process. The queue stores jobs in an SQLite file and keeps what they print.
//
// It does not know what the command lines mean. It knows only the exit code of
// a finished job.
//
// Its invariants: jobs for one system under test run one at a time, in the order
// of their ids. A job's process is started at most once, also when the server is
// killed. A change of state is on disk before any caller can see it.
package jobs
