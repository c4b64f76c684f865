package run

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"carronade/load"
	"carronade/protocol"
)

// A Share is what one of several generators does of a workload: it has some of the clients,
// and of every number that is for the whole run (concurrency, events, bytes) the same part.
type Share struct {
	load.Portion
	Of int // the clients of all generators together

	// Records get what the ledger needs, if one of the generators reads what the others send;
	// else nil. Reads is set for that one.
	Records *Records
	Reads   bool

	// Start is called when the target is open. It waits until all generators are ready, and
	// returns when the run starts, with a monotonic reading.
	Start func(ctx context.Context) (time.Time, error)
	// Lease is load.Plan.Lease.
	Lease *atomic.Int64
}

// of returns the part of a number. The parts of all shares add up to it.
func (s *Share) of(n uint64) uint64 {
	upTo := func(client int) uint64 {
		hi, lo := bits.Mul64(n, uint64(min(client, s.Of)))
		q, _ := bits.Div64(hi, lo, uint64(s.Of))
		return q
	}
	return upTo(s.To) - upTo(s.From)
}

// restOfRecords returns the records that were not taken yet.
func (s *Share) restOfRecords() [][]byte {
	if s == nil {
		return nil
	}
	return s.Records.Rest()
}

// limitSpec limits what a target prepares for to the share; a nil share is the whole run.
func (s *Share) limitSpec(spec *protocol.Spec) {
	if s == nil {
		return
	}
	spec.Portion = s.Portion
	spec.Concurrency = int(s.of(uint64(spec.Concurrency)))
	if !spec.Scheduled {
		spec.Count = s.of(spec.Count)
	}
}

// limits limits what ends a run to the share. With a schedule, the engine counts events by
// their numbers in the whole run. How many failures end a run is decided for all together.
func (s *Share) limits(l *load.Limits) {
	l.Events, l.Bytes = s.of(l.Events), s.of(l.Bytes)
	l.Failures, l.FailureRate = 0, 0
}

// join limits the plan of a target to the share, and waits until the run starts.
func (s *Share) join(ctx context.Context, plan *load.Plan, tgt load.Target) (start time.Time, err error) {
	plan.Portion, plan.Lease = s.Portion, s.Lease
	events, bytes := plan.Measurement.Events, plan.Measurement.Bytes
	s.limits(&plan.Measurement)
	if plan.Schedule != nil {
		plan.Measurement.Events = events
	} else {
		plan.WarmupEvents = s.of(plan.WarmupEvents)
	}
	if plan.Concurrency > 0 {
		if plan.Concurrency = int(s.of(uint64(plan.Concurrency))); plan.Concurrency == 0 {
			return start, errors.New("the concurrency is lower than the number of generators: each needs one caller at least")
		}
	}
	if plan.Schedule == nil {
		if err := enough(events, plan.Measurement.Events, "events"); err != nil {
			return start, err
		}
	}
	if err := enough(bytes, plan.Measurement.Bytes, "bytes"); err != nil {
		return start, err
	}
	return s.wait(ctx, load.Lead(tgt))
}

// enough returns an error if the share of a limit is 0, which would mean no limit.
func enough(whole, own uint64, what string) error {
	if whole > 0 && own == 0 {
		return fmt.Errorf("%d %s are too few to divide among the generators", whole, what)
	}
	return nil
}

// startAhead is how long before the start, or before its lead, a run is made ready to fire.
const startAhead = 50 * time.Millisecond

// wait returns when the run starts, shortly before its lead, or the context's error.
func (s *Share) wait(ctx context.Context, lead time.Duration) (start time.Time, err error) {
	if start, err = s.Start(ctx); err != nil {
		return start, err
	}
	select {
	case <-time.After(time.Until(start) - startAhead - lead):
		return start, nil
	case <-ctx.Done():
		return start, ctx.Err()
	}
}
