package run

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

	"carronade/internal/run/ledger"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
)

// A readback reads the events that a run sent, for the ledger and, in a round trip, for the
// end-to-end times.
type readback struct {
	group  int    // its number among the plan's groups; 0 if it is the only reader
	name   string // of the group; "": it is the only reader
	src    load.Source
	seek   load.Seeker
	ledger *ledger.Ledger
	pair   *ledger.Join // round trips only
	run    *load.Run
	logOf  func(stream int32) int32
	stamp  *uint32 // stamp of the run's events; nil if they have none

	committed bool // read everything again as a read_committed consumer

	early   bool         // reading starts before the run
	running atomic.Bool  // the run has begun
	joining atomic.Int64 // time without an assignment until then, ns
	began   time.Time
	once    sync.Once
	started atomic.Bool
	stop    chan struct{} // ends the reading
	done    chan struct{} // closed when it has ended
	err     error
	last    atomic.Int64                        // time of the last arrival, since began
	over    atomic.Bool                         // later arrivals are ignored
	cut     bool                                // the waiting for a round trip's events was interrupted
	blocked string                              // why the system holds back what was not read; "": not known
	lag     []int64                             // by log, at the end; nil: not known
	aborted atomic.Pointer[map[int32][]indices] // by stream: events that are not owed, since their transaction was aborted; nil: none
	counts  []counted

	returner *returner // closed-loop round trips only
	samples  *samples  // round trips only
	draining *draining // nil: no backlog
	rows     *tracing  // nil: no trace, or not a round trip

	places ledger.Places // of the verdict
}

type counted struct{ events, bytes atomic.Int64 }

// indices are a range of a stream's events, to excluded.
type indices struct{ from, to uint64 }

// fired takes the outcomes of the run.
func (b *readback) fired(out []load.Outcome) {
	b.ledger.Fired(out)
	if b.pair != nil && b.returner == nil {
		b.pair.Fired(out)
	}
}

// joins reports whether the join gets a batch, and with it each of its events. In a closed loop
// it gets only acked batches.
func (b *readback) joins(o *load.Outcome) bool {
	return b.pair.Takes(o) && (b.returner == nil || o.Acked > 0)
}

// start begins to read; later calls do nothing.
func (b *readback) start() {
	b.once.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		b.last.Store(int64(time.Since(b.began)))
		b.started.Store(true)
		go func() {
			<-b.stop
			cancel()
		}()
		go func() {
			defer close(b.done)
			now := b.run.Now
			if b.early {
				now = b.now
			}
			err := b.src.Receive(ctx, now, b.arrived)
			if err != nil && !errors.Is(err, context.Canceled) {
				b.err = err
			}
		}()
	})
}

// now is the time of the run, and 0 before it has begun.
func (b *readback) now() time.Duration {
	if !b.running.Load() {
		return 0
	}
	return b.run.Now()
}

// ended reports whether reading has ended.
func (b *readback) ended() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

func (b *readback) arrived(_ int, as []load.Arrival) {
	if b.over.Load() {
		return
	}
	b.last.Store(int64(time.Since(b.began)))
	if b.committed {
		b.ledger.Visible(as)
		return
	}
	for i := range as {
		c := &b.counts[as[i].Log]
		c.events.Add(int64(as[i].Events))
		c.bytes.Add(max(as[i].Bytes, 0))
	}
	b.ledger.Arrived(as)
	if b.pair != nil {
		b.pair.Arrived(as)
	}
}

// catchUp waits until everything up to the logs' ends was read, nothing has arrived for the
// idle time, which begins now, or the context ends.
func (b *readback) catchUp(ctx context.Context, idle time.Duration) {
	b.catchUpTo(ctx, nil, idle)
}

// catchUpTo is catchUp with known ends of the logs; nil: query them.
func (b *readback) catchUpTo(ctx context.Context, ends []int64, idle time.Duration) {
	began := time.Since(b.began)
	b.await(ctx, ends, b.done, func() bool {
		return b.draining.givesUp() || time.Since(b.began)-max(began, time.Duration(b.last.Load())) > idle
	})
}

// await waits until everything up to the logs' ends was read, the reading is done or idle, or the
// context ends. It returns the ends of the logs, which it asks for if they are nil; nil: not known.
func (b *readback) await(ctx context.Context, ends []int64, done <-chan struct{}, idle func() bool) []int64 {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if ends == nil {
			ends = b.ends(ctx)
		}
		if all(b.reached(ends)) {
			return ends
		}
		select {
		case <-done:
			return ends
		case <-ctx.Done():
			return ends
		case <-tick.C:
		}
		if idle() {
			return ends
		}
	}
}

// ends queries the ends of the logs, nil on failure.
func (b *readback) ends(ctx context.Context) []int64 {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	ends, err := b.seek.Ends(ctx)
	if err != nil {
		return nil
	}
	return ends
}

// reached reports for each log whether everything up to its end was read; nil if the ends are
// unknown. A log that ends before the run began was recreated, and is read once the source has
// noticed.
func (b *readback) reached(ends []int64) []bool {
	if ends == nil {
		return nil
	}
	starts := b.seek.Starts()
	whole := make([]bool, len(ends))
	for i, at := range b.seek.Positions() {
		whole[i] = at == ends[i] || at > ends[i] && ends[i] >= starts[i]
	}
	return whole
}

// all reports whether every log was read to its end.
func all(whole []bool) bool { return whole != nil && !slices.Contains(whole, false) }

// askTimeout is the timeout of queries for the logs' offsets.
const askTimeout = 5 * time.Second

// reportRemoved reports to the ledger which events the system removed before they were read:
// these are not lost. After an error, missing events may be among them.
func (b *readback) reportRemoved(ctx context.Context, note func(log int32, from, to int64)) error {
	from := b.seek.Starts()
	skipped := b.src.Capabilities().Skipped
	knows := skipped != nil
	if knows {
		for i, spans := range skipped() {
			for _, s := range spans {
				note(int32(i), s.From, s.To)
			}
		}
		from = b.seek.Positions() // everything before was read or skipped
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	heads, err := b.seek.Heads(ctx)
	switch {
	case err == nil:
	case knows:
		return nil // in a log that was read to its end, every other acked event must be present
	default:
		return fmt.Errorf("cannot tell whether missing events were removed before they were read: %w", err)
	}
	for i, at := range from {
		if heads[i] > at {
			note(int32(i), at, heads[i])
		}
	}
	return nil
}

// reportGone reports to the ledger which events were read but are gone by now: a concurrent
// read-back reads most events long before the end.
func (b *readback) reportGone(ctx context.Context) error {
	if !b.started.Load() || b.over.Load() {
		return nil
	}
	gone, err := b.gone(ctx)
	for i, n := range gone {
		b.ledger.Gone(int32(i), n)
	}
	return err
}

// gone asks how many of the events read from each log are gone by now; nil: not known.
func (b *readback) gone(ctx context.Context) ([]uint64, error) {
	count := b.src.Capabilities().Gone
	if count == nil || ctx.Err() != nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	gone, err := count(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot tell whether the events read are still there: %w", err)
	}
	return gone, nil
}

// finish stops reading and returns the verdict; if the context has ended, over what was read so
// far. look, if not nil, is called before, with the logs' ends.
func (b *readback) finish(ctx context.Context, look func(ends []int64) error) (measure.Ledger, error) {
	ends := b.ends(ctx)
	whole := b.reached(ends)
	b.lag = lagOf(ends, b.seek.Positions())
	if !all(whole) {
		b.blocked = whyBlocked(ctx, b.src)
	}
	err := b.end(ctx)
	if ends == nil {
		ends = b.seek.Positions()
	}
	sure := ends // events missing before these offsets are lost
	if whole != nil {
		if rerr := b.reportRemoved(ctx, b.ledger.Removed); rerr != nil {
			whole, sure, err = nil, b.seek.Starts(), errors.Join(err, unlessInterrupted(ctx, rerr))
		}
	}
	err = errors.Join(err, b.reportGone(ctx))
	if look != nil {
		err = errors.Join(err, look(ends))
	}
	v, places := b.ledger.Places(whole, sure)
	b.places = places
	if v.Unread > 0 {
		v.Blocked = b.blocked
	}
	v.Unchecked = b.src.Capabilities().Undetected
	names := b.src.Logs()
	for i := range v.Logs {
		if i < len(names) {
			v.Logs[i].Log = names[i]
		}
	}
	return v, err
}

// unlessInterrupted drops errors of an interrupted query.
func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// readCommitted reads what was sent in transactions as a read_committed consumer, up to the
// logs' ends.
func (b *readback) readCommitted(ctx context.Context, t protocol.Transactions, ends []int64) error {
	src := t.Committed()
	seek := src.Capabilities().Seeker
	t.Uncommitted(b.ledger.Uncommitted)
	c := &readback{src: src, seek: seek, ledger: b.ledger, run: b.run, began: b.began, stop: make(chan struct{}), done: make(chan struct{}), committed: true}
	c.start()
	// Not up to the last stable offset: it follows the transactions, and those of other
	// producers may be open.
	c.catchUpTo(ctx, ends, readbackIdle)
	whole := c.reached(ends)
	err := c.end(ctx)
	if err == nil && !all(whole) && ctx.Err() == nil {
		b.blocked = cmp.Or(whyBlocked(ctx, c.src), "an open transaction blocks the rest")
		err = errors.New("a read_committed consumer did not reach the ends of the logs: " + b.blocked)
	}
	if rerr := c.reportRemoved(ctx, b.ledger.Hidden); rerr != nil {
		whole, err = nil, errors.Join(err, unlessInterrupted(ctx, rerr))
	}
	b.ledger.FinishVisible(whole)
	return err
}

// stopTimeout is how long a source may take to stop.
const stopTimeout = 10 * time.Second

// end stops the reading. The source has stopTimeout for it, a tenth of that after an abort.
func (b *readback) end(ctx context.Context) error {
	if !b.started.Load() {
		return nil
	}
	close(b.stop)
	most := stopTimeout
	if ctx.Err() != nil {
		most /= 10
	}
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-b.done:
		return b.err
	case <-late.C:
		b.over.Store(true)
		return fmt.Errorf("the source was still reading %v after it was stopped", most)
	}
}

// logs are the rows of what was read.
func (b *readback) logs() []load.LogResult {
	behind := b.src.Lag()
	out := make([]load.LogResult, 0, len(b.counts))
	for i, name := range b.src.Logs() {
		r := load.LogResult{Log: name, Consumed: uint64(b.counts[i].events.Load()), Bytes: uint64(b.counts[i].bytes.Load()), Lag: -1}
		if i < len(behind) {
			r.Lag = behind[i]
		}
		if i < len(behind) && i < len(b.lag) { // the newest answer may be old, and nothing may have been answered
			r.Lag = b.lag[i]
		}
		out = append(out, r)
	}
	return out
}

// join makes the readback measure a round trip.
func (b *readback) join() {
	b.pair = ledger.NewJoin(b.logOf, func(o load.Outcome, at, earliest time.Duration) {
		b.run.Consumed(b.group, &o, at, earliest)
		b.samples.add(&o, at)
		b.rows.consumed(&o, at)
		if b.returner != nil {
			b.returner.release(o)
		}
	})
	b.pair.Missing(b.missed)
	if b.stamp != nil {
		b.pair.Stamped(*b.stamp) // so that unacknowledged events match, too
	}
}

// comeBack waits for the events of a round trip that were sent, for at least the idle time if some do not come.
// Those that have not come then are unread, and what arrives later changes nothing. t has ended its transactions.
func (b *readback) comeBack(ctx context.Context, t protocol.Transactions, idle time.Duration) {
	b.catchUp(ctx, idle)
	b.cut = ctx.Err() != nil
	if t != nil {
		spans := map[int32][]indices{}
		t.Uncommitted(func(stream int32, first, events uint64, aborted bool) {
			if aborted {
				spans[stream] = append(spans[stream], indices{first, first + events})
			}
		})
		for _, s := range spans {
			slices.SortFunc(s, func(a, b indices) int { return cmp.Compare(a.from, b.from) })
		}
		b.aborted.Store(&spans)
	}
	b.pair.GiveUpRest()
}

// missed takes events that were sent and did not come back, all of a batch or a part.
func (b *readback) missed(o load.Outcome) {
	b.rows.missed(&o)
	at := b.run.Now()
	var spans []indices
	if aborted := b.aborted.Load(); aborted != nil {
		spans = (*aborted)[o.Stream]
	}
	if len(spans) == 0 {
		b.run.Unread(b.group, &o, at)
		return
	}
	for k := range o.Events {
		index := o.First + uint64(k)
		next := sort.Search(len(spans), func(i int) bool { return spans[i].to > index })
		if next == len(spans) || spans[next].from > index {
			one := ledger.Part(&o, k, 1)
			b.run.Unread(b.group, &one, at)
		}
	}
}

// whyBlocked asks why a system holds back what is in its logs; "" if it does not, or cannot say so.
func whyBlocked(ctx context.Context, src load.Source) string {
	blocked := src.Capabilities().Blocked
	if blocked == nil || ctx.Err() != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	text, err := blocked(ctx)
	if err != nil {
		return ""
	}
	return text
}

// lagOf is how far positions are before the ends of their logs; nil if these are not known.
func lagOf(ends, positions []int64) []int64 {
	if len(ends) != len(positions) {
		return nil
	}
	lag := make([]int64, len(ends))
	for i := range ends {
		lag[i] = max(0, ends[i]-positions[i])
	}
	return lag
}
