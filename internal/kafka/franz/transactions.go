package franz

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

	"carronade/internal/kafka/cluster"
	"carronade/load"
)

// rejectInterval is the time between two completions of rejected batches once no
// transaction can be begun.
const rejectInterval = 100 * time.Millisecond

// A transactor begins and ends the transactions of one client. Records are completed
// when the broker has them, before their transaction ends; the facts report the
// outcomes of the transactions separately.
type transactor struct {
	s          *sender
	every      time.Duration
	abort      float64
	abortsOwed float64 // aborts due by that share; at 1, the next transaction is aborted
	timeout    time.Duration

	mu     sync.Mutex // held while events are handed to the client, and while a transaction ends
	open   bool
	events int    // in the open transaction
	broken string // why no transaction can be begun; "": none failed

	uncommittedRanges []uncommittedRange // what was not committed
	overflow          []uncommittedRange // by lane, of unknown outcome: those beyond mostUncommitted

	counts transactionCounts
	cancel context.CancelFunc
	done   chan struct{}
}

// An uncommittedRange is a range of a stream's events whose transaction was not
// committed, or whose outcome is unknown.
type uncommittedRange struct {
	stream   int32
	from, to uint64
	aborted  bool
}

// An eventRange is a range of a lane's events in a transaction.
type eventRange struct {
	from, to uint64
	retried  bool // one batch, whose events were all refused before
}

// addToTransaction notes that a batch is in the open transaction.
func (l *lane) addToTransaction(batch *load.Batch) {
	x := eventRange{batch.First, batch.First + uint64(batch.Events), batch.Attempt > 0}
	if k := len(l.inTransaction) - 1; k >= 0 && !x.retried && !l.inTransaction[k].retried && l.inTransaction[k].to == x.from {
		l.inTransaction[k].to = x.to
		return
	}
	l.inTransaction = append(l.inTransaction, x)
}

// mostUncommitted bounds the ranges kept. The outcome of all later ones is unknown.
const mostUncommitted = 1 << 20

// recordEnd notes the outcome of the open transaction and clears its events.
func (t *transactor) recordEnd(committed, aborted bool) {
	t.dropRetried()
	for i, l := range t.s.lanes {
		for _, x := range l.inTransaction {
			switch {
			case committed:
			case len(t.uncommittedRanges) < mostUncommitted:
				t.uncommittedRanges = append(t.uncommittedRanges, uncommittedRange{int32(l.id), x.from, x.to, aborted})
			default:
				if t.overflow == nil {
					t.overflow = make([]uncommittedRange, len(t.s.lanes))
				}
				r := &t.overflow[i]
				if r.from == r.to {
					*r = uncommittedRange{stream: int32(l.id), from: x.from}
				}
				r.from, r.to = min(r.from, x.from), max(r.to, x.to)
			}
		}
		l.inTransaction = l.inTransaction[:0]
	}
}

// dropRetried removes events that were sent again in the open transaction from the
// uncommitted ranges of earlier ones: there the broker refused them.
func (t *transactor) dropRetried() {
	again := map[int32][]eventRange{} // each is one batch, so two of them are equal or do not overlap
	for _, l := range t.s.lanes {
		for _, x := range l.inTransaction {
			if x.retried {
				again[int32(l.id)] = append(again[int32(l.id)], x)
			}
		}
	}
	if len(again) == 0 {
		return
	}
	for _, xs := range again {
		slices.SortFunc(xs, func(a, b eventRange) int { return cmp.Compare(a.from, b.from) })
	}
	var kept []uncommittedRange
	for _, f := range t.uncommittedRanges {
		xs := again[f.stream]
		for _, x := range xs[sort.Search(len(xs), func(i int) bool { return xs[i].to > f.from }):] {
			if x.from >= f.to {
				break
			}
			if x.from > f.from {
				kept = append(kept, uncommittedRange{f.stream, f.from, x.from, f.aborted})
			}
			f.from = max(f.from, x.to)
		}
		if f.from < f.to {
			kept = append(kept, f)
		}
	}
	t.uncommittedRanges = kept
}

// uncommitted calls note for each range kept.
func (t *transactor) uncommitted(note func(stream int32, first, events uint64, aborted bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, fates := range [][]uncommittedRange{t.uncommittedRanges, t.overflow} {
		for _, f := range fates {
			if f.to > f.from {
				note(f.stream, f.from, f.to-f.from, f.aborted)
			}
		}
	}
}

// transactionCounts counts the outcomes of transactions and of the events in them.
type transactionCounts struct {
	committed, aborted, failed                   atomic.Uint64
	committedEvents, abortedEvents, failedEvents atomic.Uint64
	ending                                       atomic.Int64 // ns spent ending them
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

func newTransactor(s *sender, c *cluster.Config) *transactor {
	return &transactor{
		s: s, every: c.Txn.Interval, abort: c.Txn.Abort, timeout: c.RequestTimeout,
		abortsOwed: 0.5, done: make(chan struct{}),
	}
}

// begin begins the next transaction. The mutex is held, or the transactor is not
// shared yet.
func (t *transactor) begin() error {
	if err := t.s.client.BeginTransaction(); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	t.open, t.events = true, 0
	return nil
}

// start starts a goroutine that ends a transaction at each interval.
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
				t.abortsOwed += t.abort
				abort := t.abortsOwed >= 1
				if abort {
					t.abortsOwed--
				}
				t.finish(abort, true)
				if t.broken != "" {
					tick.Reset(min(t.every, rejectInterval))
				}
			}
			t.mu.Unlock()
			t.s.completeRejected()
			// Lanes that found the mutex locked may now send again.
			t.s.ready()
		}
	}()
}

// finish ends the open transaction. With again it begins another.
func (t *transactor) finish(abort, again bool) {
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	began := time.Now()
	events := uint64(t.events)
	if events == 0 {
		abort = true // an empty transaction; it is not counted
	}
	t.open = false
	err := t.s.client.Flush(ctx)
	how := kgo.TryCommit
	if abort {
		how = kgo.TryAbort
	}
	asked := false // the coordinator was asked to commit
	if err == nil {
		err = t.s.client.EndTransaction(ctx, how)
		asked = !abort && !errors.Is(err, kerr.OperationNotAttempted)
	}
	// Without a request to commit, nothing is committed, even if the abort failed.
	t.recordEnd(asked && err == nil, !asked)
	if err != nil && !abort {
		// A batch failed, or the coordinator was lost. After an abort the client can
		// usually go on; it is not certain that the events were committed.
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

// fault is the reason why no transaction can be begun, "" if there is none.
func (t *transactor) fault() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}

// end ends the last transaction with a commit.
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
