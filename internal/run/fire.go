package run

import (
	"context"
	"errors"
	"time"

	"carronade/internal/workload"
	"carronade/load"
)

// ledgerBytes limits the ledger's memory.
const ledgerBytes = 64 << 20

// readbackIdle is how long the read-back waits without an arrival before it gives up.
const readbackIdle = 10 * time.Second

// surveyTimeout is the timeout of the query for the system's final state.
const surveyTimeout = 2 * time.Second

// send runs a sending workload: produce, or a round trip.
func (e *execution) send(ctx context.Context) (out outcome, err error) {
	f, err := e.prepareRun(ctx)
	if err != nil {
		return out, err
	}
	r, err := load.New(f.plan, f.tgt)
	if err != nil {
		return out, err
	}
	for _, back := range f.readers {
		back.run = r
	}
	if err := e.openHDR(); err != nil {
		return out, err
	}
	if err := f.rows.open(e, r, &f.plan, f.tgt); err != nil {
		return out, err
	}
	f.marks.open(r)
	faults := e.newInjector(f.marks)
	if err := faults.check(ctx); err != nil {
		return out, err
	}
	e.abort = e.newAbort(r.Mode(), &f.plan, func() { r.Stop(load.ByLimit) })
	q := e.startWatching(ctx, r.Mode(), f.plan.Unanswered, f.plan.Interval)
	f.pipeline.start(r)
	e.draining.begin(r, &f.plan)
	e.watchConnections(e.session.Target().Capabilities().Connected, watchedRun{r}, faults)
	if err := f.readers.join(ctx); err != nil {
		return out, err
	}
	stopped := context.AfterFunc(ctx, func() { r.Stop(whyEnded(ctx)) }) // Start may wait for the common start
	r.Start()
	stopped()
	f.readers.begun()
	e.draining.watch()
	f.rows.began(r)
	f.marks.begin(r)
	faults.begin(ctx, r.Started())
	q.begin(r.Now)
	if f.readsMeanwhile(e.Workload.Op) {
		f.readers.start()
	}
	unguard := e.watchProgress(f.pipeline.progress(sendingProgress(r, e.session.Target())))
	e.await(ctx, r, e.system.died())
	unguard()
	out.result, err = r.Wait()
	out.problems = append(out.problems, faults.end()...)
	out.faults = f.marks.report(out.result)
	e.endGauges(ctx, q, &out)
	out.confirm(ctx, e)
	if len(f.readers) > 0 {
		e.readBack(ctx, f.readers, &out)
		f.marks.deliver(&out, f.readers, f.tgt.Partitioner())
	}
	e.draining.report(&out)
	f.pipeline.finish(e, &out)
	f.rows.close(&out)
	return out, err
}

// A sendingRun has the parts of a run that sends.
type sendingRun struct {
	plan    load.Plan
	tgt     load.Target
	readers readers  // of what is sent; empty: nothing is read back
	rows    *tracing // nil: none

	marks *marking // nil: the run takes no marks

	pipeline *pipeline // nil: it is not a pipeline
}

// prepareRun makes the plan of a sending workload, with its read-back and trace.
func (e *execution) prepareRun(ctx context.Context) (f *sendingRun, err error) {
	w := e.Workload
	f = &sendingRun{tgt: e.session.Target()}
	if f.plan, err = w.Plan(); err != nil {
		return nil, err
	}
	plan := &f.plan
	plan.Usage, plan.Watch, plan.Cause, plan.Portable = e.usage, e.watch, e.freezeCause(), e.Portable
	plan.Returns = w.Op == workload.RoundTrip
	plan.Unanswered = e.can().Unanswered
	if e.Share != nil && e.Share.Records != nil {
		if err := e.keepOutcomes(plan, f.tgt, w.Op == workload.RoundTrip); err != nil {
			return nil, err
		}
	} else if err := e.openReaders(ctx, f); err != nil {
		return nil, err
	}
	if n := f.tgt.Capabilities().Events; n > 0 {
		plan.Gate = load.NewGate()
		plan.Gate.Add(n)
		plan.Gate.Close()
	}
	if e.draining, err = e.newDraining(plan, f.readers); err != nil {
		return nil, err
	}
	f.pipeline = e.newPipeline(ctx, plan, f.tgt)
	f.rows = e.newTracing(plan, f.readers, f.pipeline)
	f.marks = e.newMarking(plan, f.tgt)
	if e.Share != nil {
		if plan.StartAt, err = e.Share.join(ctx, plan, f.tgt); err != nil {
			return nil, failed(ctx, err)
		}
	}
	if e.Outcomes != nil {
		kept := plan.Trace
		plan.Trace = func(thread int, out []load.Outcome) {
			if kept != nil {
				kept(thread, out)
			}
			e.Outcomes(out)
		}
	}
	return f, nil
}

// readsMeanwhile reports whether events are read back while others are sent. At full speed,
// reading would slow down the run, so it comes after the run. So it does with a schedule,
// if the ledger can store everything until then.
func (f *sendingRun) readsMeanwhile(op string) bool {
	return len(f.readers) > 0 && (op == workload.RoundTrip || f.plan.Schedule != nil && !readAfter(&f.plan, f.tgt.Partitioner().Streams()))
}

// dueOf returns the due times of a stream's events, nil without a schedule.
func dueOf(plan *load.Plan, partitioner load.Partitioner) func(stream int32, index uint64) time.Duration {
	s := plan.Schedule
	if s == nil {
		return nil
	}
	return func(stream int32, index uint64) time.Duration { return s.Due(partitioner.Event(stream, index)) }
}

// endGauges stops reading metrics and stores the results.
func (e *execution) endGauges(ctx context.Context, q *gaugeReader, out *outcome) {
	asking, cancel := e.waiting(ctx)
	defer cancel()
	acked := uint64(0)
	if r := out.result; r != nil {
		acked = r.Warmup.Acked + r.Measurement.Acked
	}
	q.end(asking, acked)
	e.system.finish(asking)
	var words []string
	out.gauges, words = q.gauges()
	out.warnings = append(out.warnings, words...)
	e.survey(asking, out)
}

// survey queries facts about the system's final state, unless that is gone.
func (e *execution) survey(ctx context.Context, out *outcome) {
	survey := e.can().Survey
	if survey == nil || e.gone() || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	if err := survey(ctx); err != nil {
		out.warnings = append(out.warnings, "the final state of the system is unknown: "+err.Error())
	}
}

// waiting is the context for events to come back. An interrupt of the sending does not end it,
// since the user still wants to know the outcome; an interrupt of the waiting does. So do an
// abort, and the end of the system under test or of all connections to it, since nothing comes back from it.
func (e *execution) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		for died := e.system.died(); ; {
			select {
			case <-e.Abort:
			case <-died:
				if e.goesOn() {
					died = nil
					continue
				}
				lastRequests(ctx)
			case <-e.unconnected:
				lastRequests(ctx)
			case <-ctx.Done():
			}
			return
		}
	}()
	return ctx, cancel
}

// lastRequests waits for requests to others, such as a store behind the system, which may still be answered.
func lastRequests(ctx context.Context) {
	select {
	case <-time.After(lastAnswers):
	case <-ctx.Done():
	}
}

// ErrMemory is the cause of a context that ended because the process has nearly all of the memory that it may have.
var ErrMemory = errors.New("this job needs more memory than the server allows a job")

// whyEnded is why a run stops whose context has ended.
func whyEnded(ctx context.Context) load.Reason {
	if errors.Is(context.Cause(ctx), ErrMemory) {
		return load.ByMemory
	}
	return load.Interrupted
}
