package cli

import (
	"context"
	"fmt"

	"carronade/internal/live"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/system"
	"carronade/internal/workload"
	"carronade/load"
)

// fire runs a workload as often as it says, and delivers each report as soon
// as there is one: what comes later may fail.
func (s *session) fire(ctx context.Context, w *workload.Workload, o outputs) error {
	var outcome error
	for i := range w.Repeat() {
		d, err := s.execute(ctx, w, o, i)
		if err != nil {
			return worst(outcome, err)
		}
		outcome = worst(outcome, s.deliver(d, o, i))
		if ctx.Err() != nil {
			break
		}
	}
	return outcome
}

// execute runs a workload once and shows its progress.
func (s *session) execute(ctx context.Context, w *workload.Workload, o outputs, i int) (*report.Document, error) {
	var watcher *live.Watcher // nil is quiet
	if !o.quiet {
		watcher = live.New(s.Err, terminal(s.Err))
	}
	s.restore.Store(watcher)
	defer func() {
		watcher.Close()
		s.restore.Store(nil)
	}()
	if n := w.Repeat(); n > 1 {
		watcher.Say(fmt.Sprintf("repetition %d of %d", i+1, n))
	}
	id := run.NewID()
	o.hub.Begin(publicRun(w, id, i))
	defer o.hub.End()
	return run.Execute(ctx, run.Job{
		Workload: w, Version: version(), RunID: id,
		Repetition: i + 1, Repetitions: w.Repeat(),
		HDR: o.hdr[i], Trace: o.trace[i],
		Opened: func() {
			if w.OpenEnded() {
				s.note("no limit was given: this goes on until Ctrl-C, which stops, drains and reports")
			}
		},
		Watch: func(snap load.Snapshot) {
			watcher.Show(snap)
			o.hub.Show(snap)
		},
		Logf:        func(format string, args ...any) { watcher.Say(fmt.Sprintf(format, args...)) },
		Started:     s.started,
		Host:        system.Describe(),
		Calibration: keptCalibration(),
	})
}

// started keeps how to end at once what a run has started; nil when nothing of
// it is left.
func (s *session) started(end func()) {
	if end == nil {
		s.end.Store(nil)
		return
	}
	s.end.Store(&end)
}
