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
	r := load.NewReading(plan, e.session.Source())
	if err := e.openHDR(); err != nil {
		return out, err
	}
	e.abort = e.newAbort(load.Consuming, nil, func() { r.Stop(load.ByLimit) })
	e.startKeeping(ctx, load.Consuming, false)
	q := newGaugeReader(e.sources(), plan.Interval, e.Figures)
	q.before(ctx)
	e.system.begin(ctx)
	began := time.Now()
	r.Start()
	q.begin(func() time.Duration { return time.Since(began) })
	defer e.watchProgress(readingProgress(r, e.session.Source(), plan.Idle > 0))()
	died := e.system.died()
	for stop := ctx.Done(); ; {
		select {
		case <-died:
			if died = nil; !e.goesOn() {
				r.Stop(load.BySystem)
			}
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
	e.endGauges(ctx, q, &out)
	return out, err
}
