package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"carronade/load"
	"carronade/units"
)

// consume runs a consuming workload.
func (e *execution) consume(ctx context.Context) (outcome, error) {
	var out outcome
	w := e.Workload
	plan, err := w.ReadPlan()
	if err != nil {
		return out, err
	}
	plan.Usage, plan.Watch, plan.Cause, plan.Portable = e.usage, e.watch, e.freezeCause(), e.Portable
	plan.Observe = e.Arrivals
	if e.Share != nil {
		whole := plan.Measurement
		e.Share.limits(&plan.Measurement)
		if err := errors.Join(enough(whole.Events, plan.Measurement.Events, "events"), enough(whole.Bytes, plan.Measurement.Bytes, "bytes")); err != nil {
			return out, err
		}
		if plan.StartAt, err = e.Share.wait(ctx, 0); err != nil {
			return out, failed(ctx, err)
		}
	}
	marks := e.newReadingMarks(&plan, e.session.Source())
	silent := &silence{src: e.session.Source(), marks: marks}
	plan.Explained = silent.explained
	r := load.NewReading(plan, e.session.Source())
	silent.now = r.Now
	if err := e.openHDR(); err != nil {
		return out, err
	}
	faults := e.newInjector(marks)
	silent.faults = faults
	if err := faults.check(ctx); err != nil {
		return out, err
	}
	e.abort = e.newAbort(load.Consuming, nil, func() { r.Stop(load.ByLimit) })
	q := e.startWatching(ctx, load.Consuming, false, plan.Interval)
	e.watchConnections(e.session.Source().Capabilities().Connected, watchedReading{r}, faults)
	began := time.Now()
	r.Start()
	marks.beginReading(r)
	faults.begin(ctx, r.Started())
	q.begin(func() time.Duration { return time.Since(began) })
	defer e.watchProgress(readingProgress(r, e.session.Source(), plan.Idle > 0))()
	e.await(ctx, watchedReading{r}, e.system.died())
	out.result, err = r.Wait()
	out.problems = append(out.problems, faults.end()...)
	out.faults = marks.report(out.result)
	e.freshLag(ctx, out.result, e.session.Source())
	out.warnings = append(out.warnings, silent.warnings(out.result, plan.Idle)...)
	out.warnings = append(out.warnings, waitedAtStart(out.result, r.First())...)
	out.warnings = append(out.warnings, e.waitedAtEnd(out.result, e.session.Source())...)
	e.noteNothing(&out, e.session.Source())
	e.endGauges(ctx, q, &out)
	return out, err
}

// freshLag asks where the logs that a run has read end now: the newest answer may be old, as if the system throttles
// the reader. Of a group, which shares its logs, only the answers say how far it is behind.
func (e *execution) freshLag(ctx context.Context, r *load.Result, src load.Source) {
	seek := src.Capabilities().Seeker
	known := func(l load.LogResult) bool { return l.Lag >= 0 }
	if seek == nil || r == nil || src.Rebalancing() > 0 || e.gone() || !slices.ContainsFunc(r.Logs, known) {
		return
	}
	asking, cancel := e.waiting(ctx)
	defer cancel()
	lag := lagOf((&readback{src: src, seek: seek}).ends(asking), seek.Positions())
	for i := range min(len(lag), len(r.Logs)) {
		if known(r.Logs[i]) {
			r.Logs[i].Lag = lag[i]
		}
	}
}

// A silence knows what else than the end of the logs explains that a run which reads gets nothing.
type silence struct {
	src    load.Source
	marks  *marking
	faults *injector
	now    func() time.Duration
	alone  bool          // it had no connection when it was last looked at
	until  time.Duration // when a fault was last the cause
}

// explained implements load.ReadPlan.Explained: marks explain it, for as long as the run would wait
// otherwise; faults of the run that last; and no connection after one that ended processes.
func (s *silence) explained() time.Duration {
	s.alone = disconnected(s.src.Capabilities().Connected)
	if j := s.faults; j != nil && (j.repairing.Load() > 0 || s.alone && j.ended.Load()) {
		s.until = s.now()
	}
	return max(s.until, s.marks.newest())
}

// warnings says that a run ended because nothing arrived, and could not know whether there was something.
func (s *silence) warnings(r *load.Result, idle time.Duration) []string {
	if r.Stopped != load.ByIdle || !s.alone {
		return nil
	}
	return []string{fmt.Sprintf("nothing arrived for %s (--idle-timeout) because there was no connection: there may be more to read", units.FlagDuration(idle))}
}
