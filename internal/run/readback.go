package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/ledger"
	"carronade/load"
	"carronade/measure"
	"carronade/target"
)

// A readback reads what a run fired, for the ledger and, in a round trip, for
// the end-to-end times.
type readback struct {
	src   load.Source
	seek  target.Seekable
	book  *ledger.Ledger
	pair  *ledger.Join // round trips only
	run   *load.Run
	logOf func(stream int32) int32
	stamp *uint32 // what the run's events are stamped with; nil when they are not

	committed bool // it reads what was fired once more, as a reader of committed events

	began   time.Time
	once    sync.Once
	started atomic.Bool
	stop    chan struct{} // ends the reading
	done    chan struct{} // closed when it has ended
	err     error
	last    atomic.Int64 // when something arrived, since began
	over    atomic.Bool  // what arrives now is not looked at any more
	cut     bool         // the waiting for a round trip's events was interrupted
	counts  []counted

	returner *returner // closed-loop round trips only
	samples  *samples  // round trips only
	rows     *tracing  // nil: none, or nothing is met
}

type counted struct{ events, bytes atomic.Int64 }

// fired takes the outcomes of the run.
func (b *readback) fired(out []load.Outcome) {
	b.book.Fired(out)
	if b.pair != nil && b.returner == nil {
		b.pair.Fired(out)
	}
}

// meets reports whether the join is told of a batch, and so tells what became of
// each of its events. In a closed loop it is told of what was acked alone.
func (b *readback) meets(o *load.Outcome) bool {
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
			err := b.src.Receive(ctx, b.run.Now, b.arrived)
			if err != nil && !errors.Is(err, context.Canceled) {
				b.err = err
			}
		}()
	})
}

func (b *readback) arrived(_ int, as []load.Arrival) {
	if b.over.Load() {
		return
	}
	b.last.Store(int64(time.Since(b.began)))
	if b.committed {
		b.book.Visible(as)
		return
	}
	for i := range as {
		c := &b.counts[as[i].Log]
		c.events.Add(int64(as[i].Events))
		c.bytes.Add(max(as[i].Bytes, 0))
	}
	b.book.Arrived(as)
	if b.pair != nil {
		b.pair.Arrived(as)
	}
}

// catchUp waits until everything up to the logs' ends was read, nothing has
// arrived for so long, or the context ends.
func (b *readback) catchUp(ctx context.Context, idle time.Duration) {
	b.catchUpTo(ctx, b.ends(ctx), idle)
}

// catchUpTo is catchUp with the logs' ends, nil where they are to be asked for.
func (b *readback) catchUpTo(ctx context.Context, ends []int64, idle time.Duration) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !all(b.reached(ends)) {
		select {
		case <-b.done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Since(b.began)-time.Duration(b.last.Load()) > idle {
			return
		}
		if ends == nil {
			ends = b.ends(ctx)
		}
	}
}

// ends asks where the logs end, nil when that cannot be found out.
func (b *readback) ends(ctx context.Context) []int64 {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	ends, err := b.seek.Ends(ctx)
	if err != nil {
		return nil
	}
	return ends
}

// reached tells of each log whether everything up to its end was read; nil when the
// ends are not known. A log that ends before the run began was made anew, and is
// read once the source has noticed.
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

// askTimeout bounds how long the system is asked where its logs are.
const askTimeout = 5 * time.Second

// removed tells what the system itself removed before it was read: such events
// cannot be looked for, and are not lost. An error says that nobody knows: then what
// is missing may be among them.
func (b *readback) removed(ctx context.Context, note func(log int32, from, to int64)) error {
	from := b.seek.Starts()
	k, knows := b.src.(target.Skipping)
	if knows {
		for i, spans := range k.Skipped() {
			for _, s := range spans {
				note(int32(i), s.From, s.To)
			}
		}
		from = b.seek.Positions() // what lies before was read, or skipped
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	heads, err := b.seek.Heads(ctx)
	switch {
	case err == nil:
	case knows:
		return nil // in a log that was read to its end everything else acked must be there
	default:
		return fmt.Errorf("whether what is missing was removed before it was read is not known: %w", err)
	}
	for i, at := range from {
		if heads[i] > at {
			note(int32(i), at, heads[i])
		}
	}
	return nil
}

// lasting tells the ledger what was read and is not there any more: of a run that
// is read as it goes most was read long before its end.
func (b *readback) lasting(ctx context.Context) error {
	l, ok := b.src.(target.Lasting)
	if !ok || !b.started.Load() || b.over.Load() || ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	gone, err := l.Gone(ctx)
	if err != nil {
		return fmt.Errorf("whether what was read is still there is not known: %w", err)
	}
	for i, n := range gone {
		b.book.Gone(int32(i), n)
	}
	return nil
}

// finish stops reading and asks for the verdict; with a context that has ended,
// over what was read. look, where there is one, is what else has to be looked at
// before, up to the logs' ends.
func (b *readback) finish(ctx context.Context, look func(ends []int64) error) (measure.Ledger, error) {
	ends := b.ends(ctx)
	whole := b.reached(ends)
	err := b.end(ctx)
	if ends == nil {
		ends = b.seek.Positions()
	}
	sure := ends // up to there what is missing is lost
	if whole != nil {
		if rerr := b.removed(ctx, b.book.Removed); rerr != nil {
			whole, sure, err = nil, b.seek.Starts(), errors.Join(err, said(ctx, rerr))
		}
	}
	err = errors.Join(err, b.lasting(ctx))
	if look != nil {
		err = errors.Join(err, look(ends))
	}
	v := b.book.Verdict(whole, sure)
	names := b.src.Logs()
	for i := range v.Logs {
		if i < len(names) {
			v.Logs[i].Log = names[i]
		}
	}
	return v, err
}

// said is an error that is worth saying: none of asking that was interrupted.
func said(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// look reads what was fired into transactions as a reader of committed events does,
// up to the logs' ends.
func (b *readback) look(ctx context.Context, t target.Transactional, ends []int64) error {
	src := t.Committed()
	seek, ok := src.(target.Seekable)
	if !ok {
		return nil
	}
	t.Uncommitted(b.book.Uncommitted)
	c := &readback{src: src, seek: seek, book: b.book, run: b.run, began: b.began, stop: make(chan struct{}), done: make(chan struct{}), committed: true}
	c.start()
	// Not up to where such a reader may read now: its end follows that of the
	// transactions, and those of others may be open.
	c.catchUpTo(ctx, ends, readbackIdle)
	whole := c.reached(ends)
	err := c.end(ctx)
	if err == nil && !all(whole) && ctx.Err() == nil {
		err = errors.New("a reader of committed events did not come to the ends of the logs: a transaction that is open keeps it from what lies behind")
	}
	if rerr := c.removed(ctx, b.book.Hidden); rerr != nil {
		whole, err = nil, errors.Join(err, said(ctx, rerr))
	}
	b.book.Looked(whole)
	return err
}

// mostEnding is how long a source has to end once it was told to.
const mostEnding = 10 * time.Second

// end ends the reading. The source has mostEnding for it, a tenth of that when
// somebody waits for the program to end.
func (b *readback) end(ctx context.Context) error {
	if !b.started.Load() {
		return nil
	}
	close(b.stop)
	most := mostEnding
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
		return fmt.Errorf("the source was still reading %v after the request to stop", most)
	}
}

// logs are the rows of what was read.
func (b *readback) logs() []load.LogResult {
	behind := b.src.Behind()
	out := make([]load.LogResult, 0, len(b.counts))
	for i, name := range b.src.Logs() {
		r := load.LogResult{Log: name, Consumed: uint64(b.counts[i].events.Load()), Bytes: uint64(b.counts[i].bytes.Load()), Behind: -1}
		if i < len(behind) {
			r.Behind = behind[i]
		}
		out = append(out, r)
	}
	return out
}

// join makes the readback measure a round trip. In a closed loop, an answer reaches
// its caller when its event was consumed.
func (b *readback) join(t load.Target, closedLoop bool) load.Target {
	b.pair = ledger.NewJoin(b.logOf, func(o load.Outcome, at, earliest time.Duration) {
		b.run.Consumed(&o, at, earliest)
		b.samples.add(&o, at)
		b.rows.consumed(&o, at)
		if b.returner != nil {
			b.returner.release(o)
		}
	})
	if b.stamp != nil {
		b.pair.Stamped(*b.stamp) // so that what nobody acknowledges is met, too
	}
	if !closedLoop {
		return t
	}
	b.returner = &returner{Target: t, b: b, waiting: map[batchKey]waitingOutcome{}, lanes: map[load.Lane]*returnerLane{}}
	return b.returner
}
