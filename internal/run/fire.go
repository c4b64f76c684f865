package run

import (
	"context"
	"errors"
	"time"

	"carronade/internal/ledger"
	"carronade/load"
	"carronade/target"
)

// ledgerBytes bounds what the ledger remembers.
const ledgerBytes = 64 << 20

// readbackIdle is how long nothing may arrive before reading back is given up.
const readbackIdle = 10 * time.Second

// lookBack is how long a system may take to say how it was left.
const lookBack = 2 * time.Second

// fire runs a firing workload: produce, or a round trip.
func (e *execution) fire(ctx context.Context) (outcome, error) {
	var out outcome
	w := e.Workload
	plan, err := w.Plan()
	if err != nil {
		return out, err
	}
	plan.Usage, plan.Watch = e.usage, e.watch
	tgt := e.session.Target()
	if u, ok := e.session.(target.Unanswered); ok {
		plan.Unanswered = u.Unanswered()
	}

	var back *readback
	cut := false // the waiting for a round trip's events was interrupted
	if src := e.session.Source(); src != nil {
		if back, err = e.newReadback(tgt, src); err != nil {
			return out, err
		}
		plan.Observe = back.fired
		if w.Op == "roundtrip" {
			tgt = back.join(tgt, plan.Callers > 0)
			back.samples = newSamples(e.spec.Seed, dueOf(&plan, tgt.Deal()))
			back.samples.met = e.Met
			plan.Settled = func() {
				waiting, cancel := e.waiting(ctx)
				defer cancel()
				back.catchUp(waiting, plan.Drain)
				cut = waiting.Err() != nil
			}
		}
	}
	rows := e.traced(&plan, back)
	if e.Fired != nil {
		kept := plan.Trace
		plan.Trace = func(thread int, out []load.Outcome) {
			if kept != nil {
				kept(thread, out)
			}
			e.Fired(out)
		}
	}
	r, err := load.New(plan, tgt)
	if err != nil {
		return out, err
	}
	if back != nil {
		back.run = r
	}
	if err := e.openHDR(); err != nil {
		return out, err
	}
	if err := rows.open(e, r, &plan, tgt); err != nil {
		return out, err
	}
	e.keep(ctx, r.Mode(), plan.Unanswered)
	q := newInquiry(e.tellers(), plan.Interval)
	q.before(ctx)
	e.system.begin(ctx)
	r.Start()
	q.begin(r.Now)
	// At full speed reading would cost what is measured, so there it is done
	// afterwards, and by a schedule where all can be kept in mind for so long.
	if back != nil && (w.Op == "roundtrip" || plan.Schedule != nil && !readAfter(&plan, tgt.Deal().Stripes())) {
		back.start()
	}
	e.await(ctx, r)
	out.result, err = r.Wait()
	e.told(ctx, q, &out)
	out.confirm(ctx, e)
	if back != nil {
		reading, cancel := e.waiting(ctx)
		defer cancel()
		if cut {
			cancel()
		}
		if w.Op == "produce" {
			// Also after a scheduled run, whose newest events may not have
			// been read yet.
			e.Logf("reading back what was fired")
			back.start()
			back.catchUp(reading, readbackIdle)
		}
		verdict, verr := back.finish(reading)
		if reading.Err() != nil && e.system.ended() == "" {
			out.result.Stopped, out.result.Whole = load.Interrupted, false
		}
		if w.Verify() {
			out.ledger = &verdict
		}
		if verr != nil {
			out.warnings = append(out.warnings, "reading back failed: "+verr.Error())
		}
		out.result.Logs = back.logs()
		if back.samples != nil {
			out.samples = back.samples.report(back.src.Logs(), back.logOf)
		}
	}
	rows.close(&out)
	return out, err
}

// dueOf says when an event of a stripe is due, nil where nothing schedules the
// run.
func dueOf(plan *load.Plan, deal load.Deal) func(stripe int32, index uint64) time.Duration {
	s := plan.Schedule
	if s == nil {
		return nil
	}
	return func(stripe int32, index uint64) time.Duration { return s.Due(deal.Event(stripe, index)) }
}

// told ends an inquiry and keeps what came of it.
func (e *execution) told(ctx context.Context, q *inquiry, out *outcome) {
	asking, cancel := e.waiting(ctx)
	defer cancel()
	q.end(asking)
	e.system.finish(asking)
	var words []string
	out.gauges, words = q.gauges()
	out.warnings = append(out.warnings, words...)
	e.survey(asking, out)
}

// survey looks at the system once more, for facts about how it was left. One
// that is gone is not asked.
func (e *execution) survey(ctx context.Context, out *outcome) {
	s, ok := e.session.(target.Surveyor)
	if !ok || e.system.ended() != "" || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookBack)
	defer cancel()
	if err := s.Survey(ctx); err != nil {
		out.warnings = append(out.warnings, "how the system was left is not known: "+err.Error())
	}
}

// waiting is the context of waiting for events to come back. Who interrupted
// the firing still wants to know what became of it; who interrupts the waiting
// does not. An abort ends it in any case, and so does the end of the system
// under test: nothing comes back from it.
func (e *execution) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-e.Abort:
		case <-e.system.died():
			select { // what is asked of others, such as a store behind it, is on its way
			case <-time.After(lastAnswers):
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// await stops the run when the context ends, and aborts it when that is asked
// for.
func (e *execution) await(ctx context.Context, r *load.Run) {
	stop, abort, died := ctx.Done(), e.Abort, e.system.died()
	var late <-chan time.Time
	for {
		select {
		case <-stop:
			stop = nil
			r.Stop(load.Interrupted)
		case <-died:
			died, late = nil, time.After(lastAnswers)
			r.Stop(load.BySystem)
		case <-late:
			r.End(load.BySystem)
		case <-abort:
			r.Abort()
			<-r.Done()
			return
		case <-r.Done():
			return
		}
	}
}

// newReadback ties the firing side to the reading one.
func (e *execution) newReadback(tgt load.Target, src load.Source) (*readback, error) {
	placed, ok1 := tgt.(target.Placed)
	seek, ok2 := src.(target.Seekable)
	if !ok1 || !ok2 {
		return nil, errors.New("this target cannot tell where its events went, so they cannot be read back")
	}
	b := &readback{src: src, seek: seek, logOf: placed.LogOf, began: time.Now(), stop: make(chan struct{}), done: make(chan struct{}), counts: make([]counted, len(src.Logs()))}
	if placed.Stamped() {
		id := uint32(e.spec.RunID)
		b.stamp = &id
	}
	b.book = ledger.New(ledger.Config{
		Logs: len(src.Logs()), Start: seek.Starts(), LogOf: placed.LogOf,
		RunID: uint32(e.spec.RunID), Stamped: placed.Stamped(), Memory: ledgerBytes,
	})
	return b, nil
}
