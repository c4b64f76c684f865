package run

import (
	"context"
	"errors"
	"time"

	"carronade/internal/workload"
	"carronade/load"
	"carronade/protocol"
)

// A Reading is what one of several generators knows of the logs that it read, in addition to the events:
// it reads while others send.
type Reading struct {
	Whole   []bool        // by log: it was read to its end; nil: not known
	Ends    []int64       // by log; nil: not known
	Removed [][]load.Span // by log: removed before it was read
	Gone    []uint64      // by log: read, and not there any more
	Trouble string        // why something is not known; "": nothing
	Blocked string        // why the system held back what was not read; "": not known
	Until   time.Duration // when reading ended
}

// A Logs is what a generator that reads finds before anything is sent.
type Logs struct {
	Names   []string
	Starts  []int64 // where they ended
	Stamped bool    // see load.TargetCapabilities
	Run     uint32  // of the stamps
}

// readElsewhere returns why this generator's events cannot be read by another one; nil if they
// can.
func readElsewhere(s protocol.Session) error {
	if t := s.Capabilities().Transactions; t != nil && t.Committed() != nil {
		return errors.New("transactions are verified by the program that sends: leave out --fleet or --verify")
	}
	can := s.Target().Capabilities()
	if can.AppendKeyHashes != nil {
		return errors.New("the topic is compacted, so only the program that sends can verify it: leave out --fleet or --verify")
	}
	if can.LogOf == nil {
		return errors.New("this target does not report where its events are stored, so another machine cannot read them")
	}
	return nil
}

// keepOutcomes has the outcomes of a sending run recorded for another generator.
func (e *execution) keepOutcomes(plan *load.Plan, tgt load.Target, roundTrip bool) error {
	if err := readElsewhere(e.session); err != nil {
		return err
	}
	r := e.Share.Records
	r.Of(tgt.Capabilities().LogOf, roundTrip, dueOf(plan, tgt.Partitioner()))
	plan.Observe = r.Fired
	return nil
}

// read runs the share of a generator that reads what others send. Its context ends when they
// have ended: then it reads to the ends of the logs.
func (e *execution) read(ctx context.Context) (outcome, error) {
	var out outcome
	if err := readElsewhere(e.session); err != nil {
		return out, err
	}
	src := e.session.Source()
	seek := src.Capabilities().Seeker
	if seek == nil {
		return out, errors.New("this target does not report where its events are stored, so another machine cannot read them")
	}
	sending, err := e.Workload.Plan()
	if err != nil {
		return out, err
	}
	keep := e.Share.Records
	plan := load.ReadPlan{Warmup: sending.WarmupTime, Interval: sending.Interval, Usage: e.usage, Watch: e.watch, Cause: e.freezeCause(), Portable: e.Portable, Observe: keep.Arrived}
	logs := Logs{Names: src.Logs(), Starts: seek.Starts(), Stamped: e.session.Target().Capabilities().Stamped, Run: uint32(e.spec.RunID)} //nolint:gosec // the low bits
	if err := keep.found(&logs); err != nil {
		return out, err
	}
	if plan.StartAt, err = e.Share.wait(ctx, 0); err != nil {
		return out, failed(ctx, err)
	}
	r := load.NewReading(plan, src)
	keep.early, keep.froze = r.Earliest, r.Frozen
	q := e.startWatching(ctx, load.Consuming, false, plan.Interval)
	began := time.Now()
	r.Start()
	q.begin(func() time.Duration { return time.Since(began) })
	select {
	case <-ctx.Done():
	case <-e.Abort:
	case <-r.Done():
	}
	reading, cancel := e.waiting(ctx)
	defer cancel()
	b := &readback{src: src, seek: seek}
	idle := readbackIdle
	if e.Workload.Op == workload.RoundTrip {
		idle = sending.Drain
	}
	found := b.rest(reading, r, idle)
	found.Until = r.Now()
	lag := lagOf(found.Ends, seek.Positions())
	r.Stop(load.ByEnd)
	out.result, err = r.Wait()
	for i := range min(len(lag), len(out.result.Logs)) {
		out.result.Logs[i].Lag = lag[i]
	}
	found.complete(reading, b)
	out.reading = &found
	e.endGauges(ctx, q, &out)
	return out, err
}

// rest reads to the ends of the logs, unless nothing arrives for the idle time, which begins now.
func (b *readback) rest(ctx context.Context, r *load.Reading, idle time.Duration) Reading {
	began := r.Now()
	ends := b.await(ctx, nil, r.Done(), func() bool { return r.Now()-max(began, r.Last()) >= idle })
	return Reading{Ends: ends, Whole: b.reached(ends)}
}

// complete adds, after the reading has ended, what explains that events are missing.
func (found *Reading) complete(ctx context.Context, b *readback) {
	if found.Whole == nil {
		found.Trouble = "the ends of the logs could not be asked for"
		return
	}
	if !all(found.Whole) {
		found.Blocked = whyBlocked(ctx, b.src)
	}
	found.Removed = make([][]load.Span, len(found.Whole))
	err := b.reportRemoved(ctx, func(log int32, from, to int64) {
		found.Removed[log] = append(found.Removed[log], load.Span{From: from, To: to})
	})
	if err != nil {
		found.Whole, found.Ends, found.Trouble = nil, b.seek.Starts(), err.Error()
		return
	}
	if found.Gone, err = b.gone(ctx); err != nil {
		found.Trouble = err.Error()
	}
}
