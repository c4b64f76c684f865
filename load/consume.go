package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"carronade/measure"
)

// A ReadPlan describes a consuming run.
type ReadPlan struct {
	Warmup      time.Duration // excluded from the measurement
	Measurement Limits        // Time, Events and Bytes end it
	Idle        time.Duration // the run ends when nothing arrived for this long; 0: never
	Ends        bool          // the source stops at the end of its logs
	Interval    time.Duration // 0 means 1 s
	Portable    bool          // virtual time: no watchdog looks for freezes
	StartAt     time.Time     // see Plan.StartAt

	// Explained returns until when silence does not count for Idle, since it has another cause than that
	// there is nothing to read. If that is after the newest events, the silence belongs to the
	// measurement of a run that ends by Idle. Nil: nothing explains it. It is called from one goroutine.
	Explained func() time.Duration

	Cause   func(length time.Duration) string // see Plan.Cause
	Observe func(lane int, a []Arrival)
	Usage   func() measure.Usage
	Watch   func(Snapshot)
}

// Endless is Plan.Endless for consuming.
func (p *ReadPlan) Endless() bool { return p.Measurement.endless() && p.Idle == 0 && !p.Ends }

// A Reading is a consuming run. Like a Run it is a value, and its methods are safe for
// concurrent use.
type Reading struct {
	plan    ReadPlan
	src     Source
	start   time.Time
	lanes   []*readLane
	logs    []readLog
	divided Members
	members []readLog // by member, in the measurement; empty: there are none

	watchdog       watchdog
	left           atomic.Int64 // events still to be counted
	bytes          atomic.Int64
	lastArrival    atomic.Int64 // when the newest events arrived; -1 before the first; set only under gapMu
	first          atomic.Int64 // when the first events arrived; -1 before
	gapMu          sync.Mutex
	gap            time.Duration // longest time between arrivals
	gapAt          time.Duration
	gaps           time.Duration // sum of those over StallAfter
	stalls         measure.Stall // the individual gaps over StallAfter
	measurementAt  time.Duration
	measurementEnd time.Duration // end of the measurement: later arrivals do not count

	started   atomic.Bool // set by Start: start is valid
	endOnce   sync.Once
	ctx       context.Context // of the source
	stop      context.CancelFunc
	abort     chan struct{} // closed: do not wait for the source
	abortOnce sync.Once
	endAt     atomic.Int64
	reason    Reason
	done      chan struct{}
	result    *Result
	err       error
}

// A readLane counts for one delivering goroutine. Only the collector contends for its
// lock, once per interval.
type readLane struct {
	mu     sync.Mutex
	counts [2]measure.Counts // warm-up, measurement: since the last interval
}

type readLog struct {
	events, bytes atomic.Int64
	_             [48]byte // padding: different goroutines count different logs
}

// NewReading prepares a consuming run.
func NewReading(plan ReadPlan, src Source) *Reading {
	plan.Interval = cmp.Or(plan.Interval, defaultInterval)
	r := &Reading{plan: plan, src: src, measurementAt: plan.Warmup, measurementEnd: Never, abort: make(chan struct{}), done: make(chan struct{})}
	r.ctx, r.stop = context.WithCancel(context.Background())
	if plan.Measurement.Time > 0 {
		r.measurementEnd = plan.Warmup + plan.Measurement.Time
	}
	r.left.Store(1<<63 - 1)
	if n := plan.Measurement.Events; n > 0 {
		r.left.Store(int64(n))
	}
	r.lastArrival.Store(-1)
	r.first.Store(-1)
	r.endAt.Store(int64(Never))
	for range max(1, src.Lanes()) {
		r.lanes = append(r.lanes, &readLane{})
	}
	r.logs = make([]readLog, len(src.Logs()))
	r.divided = src.Capabilities().Members
	r.members = make([]readLog, r.divided.Number)
	return r
}

// Consume reads to the end of a plan. When the context ends, the run is stopped and
// reported as interrupted. If the source fails, Consume returns its error together with
// what was read until then.
func Consume(ctx context.Context, plan ReadPlan, src Source) (*Result, error) {
	r := NewReading(plan, src)
	r.Start()
	select {
	case <-ctx.Done():
		r.Stop(Interrupted)
	case <-r.done:
	}
	return r.Wait()
}

// Start begins to read, at the plan's StartAt if it has one. A reading that was stopped
// before reads nothing.
func (r *Reading) Start() {
	time.Sleep(time.Until(r.plan.StartAt))
	if r.start = r.plan.StartAt; r.start.IsZero() {
		r.start = time.Now()
	}
	r.started.Store(true)
	r.watchdog.clip, r.watchdog.cause = r.within, r.plan.Cause
	if !r.plan.Portable {
		r.watchdog.addActive(1)
		r.watchdog.start(r.now)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.src.Receive(r.ctx, r.now, r.arrived) }()
	go r.collect(r.ctx, ended)
}

// Stop ends the reading now: later arrivals do not count. If the source does not end
// within 10 s, that is an error. Stop may be called before Start.
func (r *Reading) Stop(why Reason) {
	at := time.Duration(0)
	if r.started.Load() {
		at = min(r.now(), r.measurementEnd)
	}
	r.end(why, at)
}

// Abort is Stop without waiting for the source.
func (r *Reading) Abort() {
	r.Stop(Interrupted)
	r.abortOnce.Do(func() { close(r.abort) })
}

// Wait returns the result once the reading has ended, which happens only after Start.
func (r *Reading) Wait() (*Result, error) {
	<-r.done
	return r.result, r.err
}

// Done is closed when the reading has ended.
func (r *Reading) Done() <-chan struct{} { return r.done }

// Last is when the newest events arrived; negative before the first. It is safe for
// concurrent use.
func (r *Reading) Last() time.Duration { return time.Duration(r.lastArrival.Load()) }

// First is when the first events arrived; negative before. It is safe for concurrent use.
func (r *Reading) First() time.Duration { return time.Duration(r.first.Load()) }

// Started returns when the reading started, with a monotonic reading. It is called after Start.
func (r *Reading) Started() time.Time { return r.start }

// Now returns the time since the start. It is called after Start.
func (r *Reading) Now() time.Duration { return r.now() }

// Earliest returns the earliest moment at which something can have arrived that was read at a
// time, and that arrived at the earliest at another one as far as its source knows: what
// arrives while this process does not run waits for it. It is safe for concurrent use.
func (r *Reading) Earliest(at, earliest time.Duration) time.Duration {
	return min(earliest, r.watchdog.earliest(at))
}

// Frozen returns the freezes of this process that ended after a moment. It is safe for concurrent use.
func (r *Reading) Frozen(after time.Duration) Frozen { return r.watchdog.since(after) }

func (r *Reading) now() time.Duration { return time.Since(r.start) }

func (r *Reading) end(why Reason, at time.Duration) {
	r.endOnce.Do(func() {
		r.reason = why
		r.endAt.Store(int64(at))
		r.stop()
	})
}

// arrived receives what the source delivers.
func (r *Reading) arrived(lane int, as []Arrival) {
	l := r.lanes[lane]
	var reached time.Duration
	l.mu.Lock()
	for i := range as {
		a := &as[i]
		if a.Events == 0 {
			continue
		}
		measurement := 0
		n := int64(a.Events)
		if a.At >= r.measurementAt {
			measurement = 1
			if a.At >= min(r.measurementEnd, time.Duration(r.endAt.Load())) {
				continue
			}
			if r.plan.Measurement.Events > 0 {
				if n = takeFrom(&r.left, n); n == 0 {
					continue
				}
			}
		}
		bytes := max(a.Bytes, 0)
		if n < int64(a.Events) { // the limit was reached within the piece
			bytes = bytes * n / int64(a.Events)
		}
		c := &l.counts[measurement]
		c.Consumed += uint64(n)
		c.Bytes += uint64(bytes)
		c.Batches++
		r.logs[a.Log].events.Add(n)
		r.logs[a.Log].bytes.Add(bytes)
		r.noteArrival(a.At)
		if measurement == 1 {
			if len(r.members) > 0 {
				m := &r.members[r.divided.Of(lane, a.Log)]
				m.events.Add(n)
				m.bytes.Add(bytes)
			}
			sum := r.bytes.Add(bytes)
			if (r.plan.Measurement.Bytes > 0 && uint64(sum) >= r.plan.Measurement.Bytes) || (r.plan.Measurement.Events > 0 && r.left.Load() == 0) {
				reached = max(reached, a.At)
			}
		}
	}
	l.mu.Unlock()
	if f := r.plan.Observe; f != nil {
		f(lane, as)
	}
	if reached > 0 {
		why := ByEvents
		if r.plan.Measurement.Events == 0 || r.left.Load() > 0 {
			why = ByBytes
		}
		r.end(why, reached)
	}
}

// within returns how much of a span lies within the measurement, as far as its ends are
// known.
func (r *Reading) within(from, to time.Duration) time.Duration {
	return max(0, min(to, r.measurementEnd, time.Duration(r.endAt.Load()))-max(from, r.measurementAt))
}

// lasts returns how much of a span lies in the warm-up (0) or in the measurement (1).
func (r *Reading) lasts(phase int, from, to time.Duration) time.Duration {
	if phase == 0 {
		return max(0, min(to, r.measurementAt, time.Duration(r.endAt.Load()))-from)
	}
	return r.within(from, to)
}

// noteArrival updates the gaps between arrivals. Time before the measurement is not
// part of a gap.
func (r *Reading) noteArrival(at time.Duration) {
	if at <= time.Duration(r.lastArrival.Load()) {
		return // as are most, because many arrive together
	}
	r.gapMu.Lock()
	defer r.gapMu.Unlock()
	before := time.Duration(r.lastArrival.Load())
	if at <= before {
		return // another lane has counted the gap
	}
	r.lastArrival.Store(int64(at))
	r.first.CompareAndSwap(-1, int64(at))
	since := max(before, r.measurementAt)
	if gap := at - since; before >= 0 && gap > 0 {
		if gap > r.gap {
			r.gap, r.gapAt = gap, since
		}
		if gap > StallAfter {
			r.gaps += gap
			r.stalls.Add(since, at)
		}
	}
}

// collect closes the intervals, watches for the end, and makes the result.
func (r *Reading) collect(ctx context.Context, ended <-chan error) {
	c := &readCollector{r: r, series: measure.NewSeries(measure.DefaultSeries)}
	tick := time.NewTicker(min(r.plan.Interval, 50*time.Millisecond))
	defer tick.Stop()
	stopped := ctx.Done()
	var late <-chan time.Time
	var err error
	for going := true; going; {
		select {
		case err = <-ended:
			going = false
		case <-stopped:
			stopped = nil
			late = time.After(stopTimeout)
		case <-late:
			err = fmt.Errorf("the source was still reading %v after the request to stop", stopTimeout)
			going = false
		case <-r.abort:
			going = false
		case <-tick.C:
			now := r.now()
			for end := time.Duration(c.next+1) * r.plan.Interval; now >= end && ctx.Err() == nil; end += r.plan.Interval {
				c.closeInterval(end)
			}
			if now >= r.measurementEnd {
				r.end(ByTime, r.measurementEnd)
			}
			r.endIdle(now)
		}
	}
	last := max(time.Duration(r.lastArrival.Load()), 0)
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		err = nil
		r.end(ByEnd, last)
	default:
		r.end(ByTarget, r.now())
	}
	c.closeInterval(max(r.now(), time.Duration(c.next)*r.plan.Interval))
	freezes := r.watchdog.end()
	r.result = c.finish()
	r.result.Freezes = freezes
	r.err = err
	close(r.done)
}

// endIdle ends a reading if nothing has arrived for long. That time is not part of the measurement, unless
// it is known that something else happened in it.
func (r *Reading) endIdle(now time.Duration) {
	idle := r.plan.Idle
	last := max(time.Duration(r.lastArrival.Load()), 0)
	if idle == 0 || now-last < idle || now-r.src.Rebalancing() < idle {
		return
	}
	if f := r.plan.Explained; f != nil {
		if until := f(); now-until < idle {
			return
		} else if until > last {
			last = now
		}
	}
	r.end(ByIdle, last)
}

// stopTimeout is how long a source may take to stop.
const stopTimeout = 10 * time.Second

// mostLagLogs limits the number of logs whose lag is recorded in every interval.
const mostLagLogs = 128

type readCollector struct {
	r      *Reading
	series *measure.Series
	next   int
	total  [2]measure.Counts
	usage  measure.Usage
	wire   uint64
}

// closeInterval closes the interval that ends at end.
func (c *readCollector) closeInterval(end time.Duration) {
	r := c.r
	var sums [2]measure.Counts
	for _, l := range r.lanes {
		l.mu.Lock()
		for i := range sums {
			sums[i].Add(l.counts[i])
			l.counts[i] = measure.Counts{}
		}
		l.mu.Unlock()
	}
	_, read := r.src.Wire()
	iv := measure.Interval{Start: time.Duration(c.next) * r.plan.Interval, End: end, LagEvents: -1}
	if r.plan.Usage != nil {
		iv.Generator = r.plan.Usage()
	}
	lag := r.src.Lag()
	for _, n := range lag {
		if n >= 0 {
			iv.LagEvents = max(iv.LagEvents, 0) + n
		}
	}
	if len(lag) <= mostLagLogs {
		iv.LagLogs = lag
	}
	c.next++
	newest := 0
	if end > r.measurementAt {
		newest = 1
		c.usage = c.usage.Join(iv.Generator)
	}
	sums[newest].WireBytes += read - c.wire
	c.wire = read
	combined := iv
	var rows, merged []measure.Interval
	for i, name := range []string{measure.WarmUp, measure.Measurement} {
		if i != newest && sums[i].IsZero() {
			continue
		}
		row := iv
		row.Phase, row.Counts, row.Arrived = name, sums[i], sums[i].Consumed
		row.Within = r.lasts(i, row.Start, row.End)
		if i != newest {
			row.Generator = measure.Usage{}
		}
		c.total[i].Add(sums[i])
		c.series.Add(row)
		merged = append(merged, c.series.Changed()...)
		combined.Phase = name
		combined.Within += row.Within
		combined.Arrived += row.Arrived
		combined.Counts.Add(sums[i])
		rows = append(rows, row)
	}
	if r.plan.Watch == nil {
		return
	}
	s := Snapshot{Consuming: true, At: end, Phase: combined.Phase, Interval: combined, Rows: rows, Merged: merged, Kept: c.series.Bytes(), Left: Never, Endless: r.plan.Endless(), Rebalance: r.src.Rebalancing()}
	s.Total.Add(c.total[0])
	s.Total.Add(c.total[1])
	if r.measurementEnd != Never {
		s.Left = max(0, r.measurementEnd-end)
	}
	s.Freezes, s.Frozen = r.watchdog.endedWithin(combined.Start, combined.End)
	r.plan.Watch(s)
}

func (c *readCollector) finish() *Result {
	r := c.r
	end := time.Duration(r.endAt.Load())
	measurementAt := min(r.measurementAt, end)
	res := &Result{
		Started: r.start, Ended: time.Now(), Stopped: r.reason, Mode: Consuming, Classes: map[string]uint64{},
		Usage: c.usage, Intervals: c.series.Intervals(), Rebalance: r.src.Rebalancing(),
	}
	for i := range res.Intervals { // that the measurement had ended may have become known later
		if iv := &res.Intervals[i]; iv.Phase == measure.Measurement {
			iv.Within = min(iv.Within, r.within(iv.Start, iv.End))
		}
	}
	_, res.WireRead = r.src.Wire()
	tally := func(i int, name string, start, end time.Duration) measure.Tally {
		return measure.Tally{
			Name: name, Start: start, End: end, Counts: c.total[i],
			Arrived: c.total[i].Consumed, ArrivedBytes: c.total[i].Bytes,
		}
	}
	if r.plan.Warmup > 0 {
		res.Warmup = tally(0, measure.WarmUp, 0, measurementAt)
	}
	res.Measurement = tally(1, measure.Measurement, measurementAt, end)
	select {
	case <-r.abort:
	default:
		res.Whole = res.Stopped == Interrupted && r.plan.Endless() && res.Measurement.Length() > 0
	}
	res.Missing = r.plan.Measurement.Missing(res.Measurement.Consumed, res.Stopped)
	lag := r.src.Lag()
	for i, name := range r.src.Logs() {
		l := LogResult{Log: name, Consumed: uint64(r.logs[i].events.Load()), Bytes: uint64(r.logs[i].bytes.Load()), Lag: -1}
		if i < len(lag) {
			l.Lag = lag[i]
		}
		res.Logs = append(res.Logs, l)
	}
	for i := range r.members {
		m := r.divided.State(i)
		m.Consumed, m.Bytes = uint64(r.members[i].events.Load()), uint64(r.members[i].bytes.Load())
		if n := res.Measurement.Length(); n > 0 {
			m.EventsPerS = float64(m.Consumed) / n.Seconds()
		}
		res.Members = append(res.Members, m)
	}
	if r.lastArrival.Load() >= 0 {
		r.noteArrival(end) // the gap since the last arrival
	}
	res.Stall = r.stalls
	res.Stall.Longest, res.Stall.LongestAt = r.gap, r.gapAt
	if n := res.Measurement.Length(); n > 0 {
		res.Stall.Share = min(1, float64(r.gaps)/float64(n))
	}
	return res
}
