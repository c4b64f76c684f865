package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/load"
)

// Timeouts of the store. The run is not delayed: it has not begun, or is over.
const (
	beginTimeout  = 10 * time.Second
	finishTimeout = time.Minute
)

// startKeeping starts to encode the series, and to store the report if there is a store. A
// failing store does not stop the run.
func (e *execution) startKeeping(ctx context.Context, mode load.Mode, unanswered bool) {
	form := report.Series{Mode: mode, Unanswered: unanswered, Percentiles: e.Workload.Percentiles()}
	if e.Store != nil {
		var err error
		if e.writer, err = e.beginKeeping(ctx, mode, unanswered); err != nil {
			e.Logf("the report is not saved during the run: %v", err)
		}
	}
	e.series = newSeries(form, e.writer)
}

// beginKeeping stores what is known before the measurement.
func (e *execution) beginKeeping(ctx context.Context, mode load.Mode, unanswered bool) (store.Writer, error) {
	now := time.Now()
	head := report.Build(e.input(&load.Result{Started: now, Ended: now, Stopped: load.Killed, Mode: mode, Unanswered: unanswered}))
	if err := head.Seal(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	return e.Store.Begin(ctx, head)
}

// abandon deletes the report of a run that never began.
func (e *execution) abandon(ctx context.Context) {
	if e.series != nil {
		e.series.end(nil)
	}
	if e.writer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginTimeout)
	defer cancel()
	if err := e.writer.Abandon(ctx); err != nil {
		e.Logf("%v", err)
	}
}

// storeReport seals a finished report and stores it. If storing failed at the start of the run,
// it is tried once more.
func (e *execution) storeReport(ctx context.Context, d *report.Document) {
	if err := d.Seal(); err != nil {
		d.Problems = append(d.Problems, err.Error())
		if e.Stored != nil {
			e.Stored(d, err)
		}
		return
	}
	if e.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	var err error
	if e.writer != nil {
		err = e.writer.Finish(ctx, d)
	} else {
		err = e.Store.Put(ctx, d)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v: %w", finishTimeout, err)
	}
	if e.Stored != nil {
		e.Stored(d, err)
	}
}
