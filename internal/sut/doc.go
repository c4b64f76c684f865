// Package sut answers for the system under test: it starts one (a command, a
// container) or finds one that runs (a process id, a container), waits until it
// is ready, watches it with all its processes, notices when it dies, and stops
// what it started.
//
// It refuses to know what is fired at the system and what came of it: the run
// asks it for figures, and tells it when to stop.
//
// Its invariants: what it started is gone when Stop returns, whatever it forked
// (and is asked to end by the kernel when this program is killed, on Linux);
// what it did not start it never ends; and no secret of the command line, the
// environment or the output is in anything it tells.
//
// # How a run uses it
//
//	s, err := sut.Start(ctx, spec)     // started and ready, or an error that says why not
//	defer s.Stop()
//	s.Begin(ctx), s.Finish(ctx)    // what it consumed: the difference
//	s.Figures(ctx)                        // before, once an interval, and after: []measure.Figure
//	<-s.Died()                         // closed when it ended by itself: the run ends at once
//	s.Stop()                           // TERM, then KILL; nil for what it did not start
//	s.Facts(), s.Totals(), s.Warnings()
//	s.Kill()                       // instead of Stop, when this program leaves at once
package sut
