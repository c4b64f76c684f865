package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/load"
)

// refuseEvery is how often events are refused once no transaction can be begun.
const refuseEvery = 100 * time.Millisecond

// A transactor begins and ends the transactions of one client. Records are
// completed when the broker has them, before their transaction ends; what became
// of the transactions is distinguished, in the facts.
type transactor struct {
	s       *clientSender
	every   time.Duration
	abort   float64
	owed    float64 // aborts owed to the share; one is made when it reaches 1
	timeout time.Duration

	mu     sync.Mutex // held while events are fired, and while a transaction ends
	open   bool
	events int // fired in the open transaction
	broken string

	fates []fate // of what was not committed
	later []fate // by lane, unsure: where there are too many of them

	counts transactionCounts
	cancel context.CancelFunc
	done   chan struct{}
}

// A fate is events of a stream whose transaction was not committed, or whose end
// nobody knows.
type fate struct {
	stream   int32
	from, to uint64
	aborted  bool
}

// A member is events of a lane, one after the other, in a transaction.
type member struct {
	from, to uint64
	again    bool // one batch, whose events were all refused before
}

// note keeps that a batch is in the open transaction.
func (l *clientLane) note(batch *load.Batch) {
	x := member{batch.First, batch.First + uint64(batch.Events), batch.Attempt > 0}
	if k := len(l.fired) - 1; k >= 0 && !x.again && !l.fired[k].again && l.fired[k].to == x.from {
		l.fired[k].to = x.to
		return
	}
	l.fired = append(l.fired, x)
}

// mostFates bounds how many are kept; of all that follow it is not known.
const mostFates = 1 << 20

// note keeps what became of the open transaction, and begins another.
func (t *transactor) note(committed, aborted bool) {
	t.replace()
	for i, l := range t.s.lanes {
		for _, x := range l.fired {
			switch {
			case committed:
			case len(t.fates) < mostFates:
				t.fates = append(t.fates, fate{int32(l.id), x.from, x.to, aborted})
			default:
				if t.later == nil {
					t.later = make([]fate, len(t.s.lanes))
				}
				r := &t.later[i]
				if r.from == r.to {
					*r = fate{stream: int32(l.id), from: x.from}
				}
				r.from, r.to = min(r.from, x.from), max(r.to, x.to)
			}
		}
		l.fired = l.fired[:0]
	}
}

// replace takes what was fired again in the open transaction out of the fates of
// those before: there it was refused.
func (t *transactor) replace() {
	again := map[int32][]member{} // batches, so that two are the same or apart
	for _, l := range t.s.lanes {
		for _, x := range l.fired {
			if x.again {
				again[int32(l.id)] = append(again[int32(l.id)], x)
			}
		}
	}
	if len(again) == 0 {
		return
	}
	for _, xs := range again {
		slices.SortFunc(xs, func(a, b member) int { return cmp.Compare(a.from, b.from) })
	}
	var kept []fate
	for _, f := range t.fates {
		xs := again[f.stream]
		for _, x := range xs[sort.Search(len(xs), func(i int) bool { return xs[i].to > f.from }):] {
			if x.from >= f.to {
				break
			}
			if x.from > f.from {
				kept = append(kept, fate{f.stream, f.from, x.from, f.aborted})
			}
			f.from = max(f.from, x.to)
		}
		if f.from < f.to {
			kept = append(kept, f)
		}
	}
	t.fates = kept
}

// uncommitted tells what is kept.
func (t *transactor) uncommitted(note func(stream int32, first, events uint64, aborted bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, fates := range [][]fate{t.fates, t.later} {
		for _, f := range fates {
			if f.to > f.from {
				note(f.stream, f.from, f.to-f.from, f.aborted)
			}
		}
	}
}

// transactionCounts is what became of transactions and the events in them.
type transactionCounts struct {
	committed, aborted, failed                   atomic.Uint64
	committedEvents, abortedEvents, failedEvents atomic.Uint64
	ending                                       atomic.Int64 // ns spent in ends
}

func (t *transactionCounts) add(o *transactionCounts) {
	t.committed.Add(o.committed.Load())
	t.aborted.Add(o.aborted.Load())
	t.failed.Add(o.failed.Load())
	t.committedEvents.Add(o.committedEvents.Load())
	t.abortedEvents.Add(o.abortedEvents.Load())
	t.failedEvents.Add(o.failedEvents.Load())
	t.ending.Add(o.ending.Load())
}

func (t *transactionCounts) facts() map[string]any {
	f := map[string]any{
		"committed": t.committed.Load(), "committed_events": t.committedEvents.Load(),
		"aborted": t.aborted.Load(), "aborted_events": t.abortedEvents.Load(),
		"failed": t.failed.Load(), "failed_events": t.failedEvents.Load(),
	}
	if n := t.committed.Load() + t.aborted.Load(); n > 0 {
		f["end_mean_us"] = float64(t.ending.Load()) / float64(n) / 1e3
	}
	return f
}

func newTransactor(s *clientSender, c *config) *transactor {
	return &transactor{
		s: s, every: c.txn.interval, abort: c.txn.abort, timeout: c.requestTimeout,
		owed: 0.5, done: make(chan struct{}),
	}
}

// begin begins the next transaction. The mutex is held, or nobody else knows
// of the transactor yet.
func (t *transactor) begin() error {
	if err := t.s.client.BeginTransaction(); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	t.open, t.events = true, 0
	return nil
}

// start ends a transaction at each interval, from a goroutine of its own.
func (t *transactor) start() {
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	go func() {
		defer close(t.done)
		tick := time.NewTicker(t.every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			t.mu.Lock()
			if t.open && t.events > 0 {
				t.owed += t.abort
				abort := t.owed >= 1
				if abort {
					t.owed--
				}
				t.finish(abort, true)
				if t.broken != "" {
					tick.Reset(min(t.every, refuseEvery))
				}
			}
			t.mu.Unlock()
			t.s.refuse()
			// Lanes that found the mutex taken fire again.
			t.s.ready()
		}
	}()
}

// finish ends the open transaction, and begins another when asked to.
func (t *transactor) finish(abort, again bool) {
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	began := time.Now()
	events := uint64(t.events)
	if events == 0 {
		abort = true // of nothing; it is not counted
	}
	t.open = false
	err := t.s.client.Flush(ctx)
	how := kgo.TryCommit
	if abort {
		how = kgo.TryAbort
	}
	asked := false // for a commit
	if err == nil {
		err = t.s.client.EndTransaction(ctx, how)
		asked = !abort && !errors.Is(err, kerr.OperationNotAttempted)
	}
	// What nobody asked to commit is not committed, whatever became of the abort.
	t.note(asked && err == nil, !asked)
	if err != nil && !abort {
		// A batch failed, or the coordinator was lost: an abort mends most of
		// it, and the events are not committed for certain.
		t.counts.failed.Add(1)
		t.counts.failedEvents.Add(events)
		if abortErr := errors.Join(t.s.client.AbortBufferedRecords(ctx), t.s.client.EndTransaction(ctx, kgo.TryAbort)); abortErr != nil {
			t.broken = fmt.Sprintf("a transaction could not be ended (%v), and no further one was begun", abortErr)
			return
		}
	} else if err != nil {
		t.counts.failed.Add(1)
		t.counts.failedEvents.Add(events)
		t.broken = fmt.Sprintf("a transaction could not be aborted (%v), and no further one was begun", err)
		return
	} else if events > 0 {
		t.counts.ending.Add(int64(time.Since(began)))
		if abort {
			t.counts.aborted.Add(1)
			t.counts.abortedEvents.Add(events)
		} else {
			t.counts.committed.Add(1)
			t.counts.committedEvents.Add(events)
		}
	}
	if again {
		if err := t.begin(); err != nil {
			t.broken = err.Error()
		}
	}
}

// fault is what broke the transactions, "" while nothing did.
func (t *transactor) fault() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}

// end ends the last transaction, committing what was fired.
func (t *transactor) end() {
	if t.cancel != nil {
		t.cancel()
		<-t.done
		t.cancel = nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		t.finish(false, false)
	}
}
