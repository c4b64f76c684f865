package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"carronade/internal/run/ledger"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/units"
)

// The readers read back what a run sends, each of them all of it: one, or one for each consumer group.
type readers []*readback

// openReaders prepares the readers of what a run sends, if there are any.
func (e *execution) openReaders(ctx context.Context, f *sendingRun) error {
	groups := e.can().Groups
	if len(groups) == 0 {
		src := e.session.Source()
		if src == nil {
			return nil
		}
		groups = []protocol.Group{{Source: src}}
	}
	for i, g := range groups {
		back, err := e.newReadback(f.tgt, g.Source, len(groups))
		if err != nil {
			return err
		}
		back.group, back.name = i, g.Name
		f.readers = append(f.readers, back)
		e.ledgers = append(e.ledgers, back.ledger)
	}
	plan := &f.plan
	plan.Observe = f.readers.fired
	if len(groups) == 1 {
		plan.Observe = f.readers[0].fired
	}
	if e.Workload.Op != workload.RoundTrip {
		return nil
	}
	if e.can().Groups != nil {
		for _, b := range f.readers {
			plan.Groups = append(plan.Groups, load.Group{Name: b.name, Unassigned: b.unassigned})
		}
	}
	samples := newSamples(e.spec.Seed, dueOf(plan, f.tgt.Partitioner()))
	samples.cameBack = e.CameBack
	for _, back := range f.readers {
		back.join()
		back.samples = samples
	}
	if plan.Concurrency > 0 {
		f.tgt = newReturner(f.tgt, f.readers)
	}
	plan.Completed = func() {
		e.draining.sent(ctx)
		defer e.draining.end()
		waiting, cancel := e.waiting(ctx)
		defer cancel()
		f.readers.comeBack(waiting, e.can().Transactions, plan.Drain)
	}
	return nil
}

// newReadback connects the sending and one of several readers.
func (e *execution) newReadback(tgt load.Target, src load.Source, readers int) (*readback, error) {
	can, seek := tgt.Capabilities(), src.Capabilities().Seeker
	if can.LogOf == nil || seek == nil {
		return nil, errors.New("this target does not report where its events are stored, so they cannot be read back")
	}
	b := &readback{src: src, seek: seek, logOf: can.LogOf, began: time.Now(), stop: make(chan struct{}), done: make(chan struct{}), counts: make([]counted, len(src.Logs()))}
	if can.Stamped {
		id := uint32(e.spec.RunID)
		b.stamp = &id
	}
	cfg := ledger.Config{
		Logs: len(src.Logs()), Start: seek.Starts(), LogOf: can.LogOf,
		RunID: uint32(e.spec.RunID), Stamped: can.Stamped, Memory: ledgerBytes / int64(readers),
		Keys: can.AppendKeyHashes,
	}
	b.ledger = ledger.New(cfg)
	return b, nil
}

// fired takes the outcomes of the run.
func (r readers) fired(out []load.Outcome) {
	for _, b := range r {
		b.fired(out)
	}
}

// start begins to read.
func (r readers) start() {
	for _, b := range r {
		b.start()
	}
}

// join starts the readers that depend on others, such as the members of groups, and waits until they read: the first
// events of a run should not wait for an assignment.
func (r readers) join(ctx context.Context) error {
	var waits readers
	for _, b := range r {
		if b.src.Capabilities().Ready != nil {
			waits = append(waits, b)
		}
	}
	if len(waits) == 0 {
		return nil
	}
	for _, b := range waits {
		b.early = true
		b.start()
	}
	errs := make([]error, len(waits))
	waits.each(func(i int, b *readback) {
		if errs[i] = b.src.Capabilities().Ready(ctx); errs[i] != nil && b.ended() && b.err != nil {
			errs[i] = b.err
		}
	})
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i < 0 {
		return nil
	}
	r.each(func(_ int, b *readback) { _ = b.end(ctx) }) // there is nothing to read
	return failed(ctx, errs[i])
}

// begun notes that the run has begun.
func (r readers) begun() {
	for _, b := range r {
		b.joining.Store(int64(b.src.Rebalancing()))
		b.running.Store(true)
	}
}

// unassigned is how long the reader had no assignment since the run began.
func (b *readback) unassigned() time.Duration {
	if !b.running.Load() {
		return 0
	}
	return max(0, b.src.Rebalancing()-time.Duration(b.joining.Load()))
}

// each calls f with all readers at the same time, and waits.
func (r readers) each(f func(i int, b *readback)) {
	var all sync.WaitGroup
	for i, b := range r {
		all.Go(func() { f(i, b) })
	}
	all.Wait()
}

// comeBack waits for the events of a round trip, for all readers.
func (r readers) comeBack(ctx context.Context, t protocol.Transactions, idle time.Duration) {
	if t != nil {
		t.EndTransactions() // a read_committed consumer stops at an open transaction
	}
	r.each(func(_ int, b *readback) { b.comeBack(ctx, t, idle) })
}

// readBack reads the events that were not read back during the run, and completes the ledger.
func (e *execution) readBack(ctx context.Context, all readers, out *outcome) {
	reading, cancel := e.waiting(ctx)
	defer cancel()
	for _, b := range all {
		if b.cut {
			cancel()
		}
	}
	t := e.can().Transactions
	if t != nil {
		t.EndTransactions() // a read_committed consumer stops at an open transaction
	}
	if e.Workload.Op == workload.Produce {
		// A scheduled run needs this too: its newest events may be unread.
		e.Logf("reading back what was sent")
		all.start()
		all.each(func(_ int, b *readback) { b.catchUp(reading, readbackIdle) })
	}
	verdicts, errs := make([]measure.Ledger, len(all)), make([]error, len(all))
	all.each(func(i int, b *readback) {
		var look func(ends []int64) error
		if t != nil && e.Workload.Verify() && t.Committed() != nil {
			look = func(ends []int64) error { return b.readCommitted(reading, t, ends) }
		}
		verdicts[i], errs[i] = b.finish(reading, look)
	})
	if reading.Err() != nil {
		e.interrupted(out.result)
	}
	verdict := all.verdict(verdicts)
	if e.Workload.Verify() {
		out.ledger = &verdict
	}
	for i, b := range all {
		v := &verdicts[i]
		if !e.Workload.Verify() && b.blocked != "" && v.Unread > 0 {
			out.warnings = append(out.warnings, b.prefix()+"not everything was read: "+b.blocked)
		}
		if errs[i] != nil {
			out.warnings = append(out.warnings, b.prefix()+"reading back failed: "+errs[i].Error())
		}
		if most := b.ledger.KeysLeft(); most > 0 && v.Unread > 0 {
			out.warnings = append(out.warnings, fmt.Sprintf("%sthe topic is compacted and has more keys than are tracked (%s): missing events of the other keys may be lost or compacted; use fewer keys, such as --key 'uniform(%d)'",
				b.prefix(), units.FormatCount(uint64(most)), most/2))
		}
	}
	out.result.Logs = all.logs()
	if first := all[0]; first.samples != nil {
		out.samples = first.samples.report(first.src.Logs(), first.logOf)
	}
}

// prefix names the group in texts; "" for the only reader.
func (b *readback) prefix() string {
	if b.name == "" {
		return ""
	}
	return "group " + b.name + ": "
}

// verdict returns the verdict of the only reader, or the sum of the groups' verdicts.
func (r readers) verdict(of []measure.Ledger) measure.Ledger {
	if r[0].name == "" {
		return of[0]
	}
	var names []string
	for _, b := range r {
		names = append(names, b.name)
	}
	return measure.JoinLedgers(names, of)
}

// logs are the rows of what was read, of all readers together. The lag of a log is that of the last reader.
func (r readers) logs() []load.LogResult {
	all := r[0].logs()
	for _, b := range r[1:] {
		for i, l := range b.logs() {
			all[i].Consumed += l.Consumed
			all[i].Bytes += l.Bytes
			all[i].Lag = max(all[i].Lag, l.Lag)
		}
	}
	return all
}

// places are the places of what the ledgers of all readers found.
func (r readers) places() (all ledger.Places) {
	for _, b := range r {
		all.Lost = append(all.Lost, b.places.Lost...)
		all.Duplicated = append(all.Duplicated, b.places.Duplicated...)
		all.Reordered = append(all.Reordered, b.places.Reordered...)
	}
	return all
}
