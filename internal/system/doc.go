// Package system handles the system under test: it starts one (a command, a container) or finds a
// running one (a process id, a container), waits until it is ready, watches it with all its
// processes, notices when it dies, and stops what it started. Before that it provides the
// revision under test: it reads the state of a git repository, checks out a revision into a
// worktree of its own, builds it there, and has a cache of builds. It also reads what the system
// reports about itself: the variables of a Go program (expvar), metrics in the text format of
// Prometheus, and the pauses in a JVM's unified garbage collection log.
//
// It does not know the load on the system or its results: the run reads its figures, and stops
// it. Nor does it know the meaning of names in what the system reports.
//
// Its invariants: the user's folder and repository are only read. Revisions are checked out of a
// second repository in the user's cache folder, which uses the objects of the user's; what is
// fetched goes there too. A build that is in use is never removed, and the cache is limited.
// Everything it started is gone when Stop returns, whatever it forked (and on
// Linux the kernel asks it to end when this program is killed); it never ends what it did not
// start; and no secret of the command line, the environment or the output is in anything that
// it returns. A source of figures costs the system at most one request per interval, and this
// process at most mostSourceBytes and mostSourceFigures, however much the system reports; and
// one that cannot be read is an error of that source and never of the run.
//
// # How a run uses it
//
//	s, err := system.Start(ctx, spec)     // started and ready, or an error that says why not
//	defer s.Stop()
//	s.Begin(ctx), s.Finish(ctx)    // what it consumed: the difference
//	s.Figures(ctx)                        // before, once an interval, and after: []measure.Figure
//	<-s.Died()                         // closed when it ended without being asked
//	s.Stop()                           // TERM, then KILL; nil for what it did not start
//	s.Facts(), s.Totals(), s.Warnings()
//	s.Kill()                       // instead of Stop, when this program leaves at once
package system
