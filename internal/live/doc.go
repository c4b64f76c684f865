// Package live is a run in progress as its user sees it in a terminal, and marks it. It
// shows the run: on a terminal a few lines rewritten in place, elsewhere a plain line per
// interval. It is responsible for what is shown and how it is updated. And it opens a socket,
// named by the id of the run's report, on which a request of another process of the same user
// puts a mark on the run's time axis. It does not know targets, flags, reports, or what a
// mark means.
// Its invariants: the terminal is left as it was found, even if the run fails. The
// cursor is never hidden and never left within the status, so a killed program
// leaves nothing to restore. Only the user who started a run can connect to its socket, and
// the socket goes away with the run, or with a later one if the run was killed.
// The users of a server run as one user of this machine: an owner finds the runs of that name
// and no others.
package live
