// Package live is a run in progress as others see it and mark it: in the user's terminal, on the
// live page, in a system of metrics, in another process.
//
//   - A Watcher shows it in the terminal: a few lines rewritten in place, elsewhere a plain line per
//     interval.
//   - An Exporter exports its metrics: to Prometheus, which scrapes them, and to Graphite and OTLP
//     collectors once per interval.
//   - A Recorder makes frames of its intervals. A Frame has the numbers of a second. A Hub keeps the
//     frames of several runs and serves them as a stream and as a series, and a Page serves a hub and
//     what draws its runs. A FrameWriter writes frames as JSON lines, which ReadFrames reads in another
//     process.
//   - A MarkSocket, named by the id of the run's report, takes requests of other processes of the same
//     user to put a mark on the run's time axis; a Page takes them over HTTP.
//   - A Guard protects an HTTP server against other pages in the user's browser and against other users
//     of the network; the server of a team and the remote API of a drop-in have one too.
//
// The package is responsible for what is shown, for the names and formats of the metrics and of frames,
// and for never delaying a run: if a collector or a viewer is too slow or absent, data beyond a limit is
// dropped, counted and reported in a warning, or merged. It neither starts nor stops runs. It does not
// know targets' protocols, commands, flags, reports, or what a mark means.
//
// Its invariants: the terminal is left as it was found, even if the run fails. The cursor is never
// hidden and never left within the status, so a killed program leaves nothing to restore. Counters
// of metrics only grow within a run, and equal the report's at its end; the last ones stay when the
// run has ended. The sums of the counts of all frames of a run equal the totals of its report, however
// slowly the frames are read. A viewer delays the exit of the program by no more than a moment. Only the
// user who started a run can connect to its socket, and the socket goes away with the run, or with a
// later one if the run was killed. The users of a server run as one user of this machine: an owner finds
// the runs of that name and no others. Behind Handler of a Guard nothing but the page is served without
// the token, and behind Protect nothing to a name that is not the server's own.
package live
