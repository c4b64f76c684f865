package run

import (
	"context"
	"errors"
	"time"

	"carronade/load"
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
	r := load.NewReading(plan, e.session.Source())
	if err := e.openHDR(); err != nil {
		return out, err
	}
	faults := e.newInjector(marks)
	if err := faults.check(ctx); err != nil {
		return out, err
	}
	e.abort = e.newAbort(load.Consuming, nil, func() { r.Stop(load.ByLimit) })
	e.startKeeping(ctx, load.Consuming, false)
	q := newGaugeReader(e.sources(), plan.Interval, e.Figures)
	q.before(ctx)
	e.system.begin(ctx)
	e.watchConnections(e.session.Source(), watchedReading{r}, faults)
	began := time.Now()
	r.Start()
	marks.beginReading(r)
	faults.begin(ctx, r.Started())
	q.begin(func() time.Duration { return time.Since(began) })
	defer e.watchProgress(readingProgress(r, e.session.Source(), plan.Idle > 0))()
	died, none := e.system.died(), e.unconnected
	for stop := ctx.Done(); ; {
		select {
		case <-died:
			if died = nil; !e.goesOn() {
				r.Stop(load.BySystem)
			}
			continue
		case <-none:
			none = nil
			r.Stop(load.ByLoss)
			continue
		case <-stop:
			stop = nil
			r.Stop(load.Interrupted)
			continue
		case <-e.Abort:
			r.Abort()
		case <-r.Done():
		}
		break
	}
	out.result, err = r.Wait()
	out.problems = append(out.problems, faults.end()...)
	out.faults = marks.report(out.result)
	e.endGauges(ctx, q, &out)
	return out, err
}
