package run

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"carronade/measure"
	"carronade/protocol"
)

// Limits of reading metrics from other programs.
const (
	shortestPoll = 100 * time.Millisecond // between two requests: they must not load the server
	pollTimeout  = time.Second            // timeout of a request; half of the interval at most
	mostGauges   = 100                    // per source
)

// A namedSource is a source of metrics, with the program they belong to.
type namedSource struct {
	from    string // Gauge.From
	figures protocol.Figures
}

// can is what the session can do; nothing, where there is none: an operator only coordinates.
func (e *execution) can() protocol.SessionCapabilities {
	if e.session == nil {
		return protocol.SessionCapabilities{}
	}
	return e.session.Capabilities()
}

// sources are the sources of this run.
func (e *execution) sources() []namedSource {
	var all []namedSource
	if t := e.can().Figures; t != nil {
		all = append(all, namedSource{"server", t})
	}
	if e.system != nil {
		all = append(all, namedSource{"system", e.system.Figures})
	}
	if e.vitals != nil {
		all = append(all, namedSource{"host", e.vitals.Figures})
	}
	return all
}

// A gaugeReader reads metrics from sources before, during and after a run, and stores them as
// gauges. Each source has its own goroutine, so that a slow one delays neither the run nor the
// others.
type gaugeReader struct {
	sources []*polledSource
	every   time.Duration
	seen    func(from string, figures []measure.Figure) // may be nil
	stop    context.CancelFunc
	going   sync.WaitGroup
}

// newGaugeReader returns a gaugeReader that reads once per interval.
// seen gets the values of each reading; may be nil.
func newGaugeReader(sources []namedSource, interval time.Duration, seen func(from string, figures []measure.Figure)) *gaugeReader {
	interval = cmp.Or(interval, time.Second)
	q := &gaugeReader{every: max(interval, shortestPoll), seen: seen}
	for _, t := range sources {
		q.sources = append(q.sources, &polledSource{namedSource: t, maxPoints: measure.DefaultSeries, pollsPerPoint: 1})
	}
	return q
}

// each runs f for all sources at once.
func (q *gaugeReader) each(f func(*polledSource)) {
	var all sync.WaitGroup
	for _, a := range q.sources {
		all.Go(func() { f(a) })
	}
	all.Wait()
}

// before reads the metrics of the idle system.
func (q *gaugeReader) before(ctx context.Context) {
	q.each(func(a *polledSource) {
		figures, err := a.poll(ctx, pollTimeout)
		a.countFailure(err)
		for _, f := range figures {
			if g := a.gauge(f, 0); g != nil {
				g.before = &f.Value
			}
		}
	})
}

// begin reads once per interval from now on. now is the offset from the start of the run.
func (q *gaugeReader) begin(now func() time.Duration) {
	ctx, stop := context.WithCancel(context.Background())
	q.stop = stop
	for _, a := range q.sources {
		q.going.Go(func() {
			tick := time.NewTicker(q.every)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				figures, err := a.poll(ctx, min(q.every/2, pollTimeout))
				if ctx.Err() != nil {
					return // the end of the run canceled it
				}
				a.countFailure(err)
				a.note(figures, now())
				if q.seen != nil {
					q.seen(a.from, figures)
				}
			}
		})
	}
}

// Bounds of the wait for what the system counts behind the acknowledgements.
const (
	mostSettling  = 30 * time.Second
	settledAfter  = 3 * time.Second // without a change
	settlingEvery = 250 * time.Millisecond
)

// settle waits until the last stage has counted what was acked, or no longer changes. It returns some time after its
// last reading, so that the last rates are not those of a moment.
func (q *gaugeReader) settle(ctx context.Context, acked uint64) {
	counting := slices.DeleteFunc(slices.Clone(q.sources), func(a *polledSource) bool {
		return !slices.ContainsFunc(a.figureSeries, func(g *figureSeries) bool { return g.Stage })
	})
	if len(counting) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mostSettling)
	defer cancel()
	tick := time.NewTicker(settlingEvery)
	defer tick.Stop()
	for count, since := -1.0, time.Now(); ; {
		last := count
		for _, a := range counting {
			figures, _ := a.poll(ctx, pollTimeout)
			for _, f := range figures {
				if f.Stage {
					last = f.Value
				}
			}
		}
		if last != count {
			count, since = last, time.Now()
		}
		over := last >= float64(acked) || time.Since(since) > settledAfter
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if over {
			return
		}
	}
}

// end stops the periodic reading and reads a last time. If the system counts what becomes of the events that were
// acked, that is when it has counted them.
func (q *gaugeReader) end(ctx context.Context, acked uint64) {
	q.stop()
	q.going.Wait()
	q.settle(ctx, acked)
	q.each(func(a *polledSource) {
		figures, err := a.poll(ctx, pollTimeout)
		a.countFailure(err)
		for _, f := range figures {
			if g := a.gauge(f, a.polls); g != nil {
				g.after = &f.Value
			}
		}
	})
}

// gauges are the metrics, in the order of the sources and of their first appearance, and
// warnings about missing ones.
func (q *gaugeReader) gauges() (all []measure.Gauge, warnings []string) {
	for _, a := range q.sources {
		for _, g := range a.figureSeries {
			all = append(all, g.gauge(a))
		}
		warnings = append(warnings, a.warnings()...)
	}
	return all, warnings
}

// A polledSource has the results of one source.
type polledSource struct {
	namedSource
	figureSeries  []*figureSeries
	maxPoints     int // points kept of each
	pollsPerPoint int // requests that make one point
	polls         int // during the run
	holes         int // requests without an answer
	err           error
	tooMany       bool // it has more metrics than the limit
}

// figureSeries is one metric of a source. Points are means of consecutive values, so that a
// long run needs no more memory than one of an hour. A missing value is a gap, not a zero.
type figureSeries struct {
	measure.Figure
	before, after *float64
	points        []cell
	since         int // the first request that it was expected in
	count         int // requests with a value, before any were merged
}

// cell merges requests per*slot to per*(slot+1)-1 into one point.
type cell struct {
	slot, n int32
	sum     float64
	at      time.Duration // of the last
}

// poll reads once. It leaves out NaN: a server may have no value.
func (a *polledSource) poll(ctx context.Context, most time.Duration) ([]measure.Figure, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	figures, err := a.figures(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(figures, func(f measure.Figure) bool { return math.IsNaN(f.Value) || math.IsInf(f.Value, 0) }), nil
}

// countFailure counts a failed request, and keeps the first error, which is the most useful.
func (a *polledSource) countFailure(err error) {
	if err == nil {
		return
	}
	a.holes++
	if a.err == nil {
		a.err = err
	}
}

// note stores the values of one interval.
func (a *polledSource) note(figures []measure.Figure, at time.Duration) {
	ask := a.polls
	slot := int32(ask / a.pollsPerPoint)
	a.polls++
	for _, f := range figures {
		g := a.gauge(f, ask)
		if g == nil {
			continue
		}
		g.count++
		if n := len(g.points); n > 0 && g.points[n-1].slot == slot {
			g.points[n-1].add(cell{sum: f.Value, n: 1, at: at})
			continue
		}
		g.points = append(g.points, cell{slot: slot, n: 1, sum: f.Value, at: at})
	}
	if int(slot) == a.maxPoints-1 && a.polls%a.pollsPerPoint == 0 {
		a.halve()
	}
}

// halve merges neighbouring slots of every gauge, so that all keep one axis.
func (a *polledSource) halve() {
	a.pollsPerPoint *= 2
	for _, g := range a.figureSeries {
		kept := g.points[:0]
		for _, c := range g.points {
			c.slot /= 2
			if n := len(kept); n > 0 && kept[n-1].slot == c.slot {
				kept[n-1].add(c)
				continue
			}
			kept = append(kept, c)
		}
		g.points = kept
	}
}

func (c *cell) add(o cell) {
	c.sum += o.sum
	c.n += o.n
	c.at = o.at
}

// gauge returns the series of a metric, which may be new; nil beyond the limit.
func (a *polledSource) gauge(f measure.Figure, ask int) *figureSeries {
	for _, g := range a.figureSeries {
		if g.Name == f.Name && g.Unit == f.Unit {
			return g
		}
	}
	if len(a.figureSeries) == mostGauges {
		a.tooMany = true
		return nil
	}
	g := &figureSeries{Figure: f, since: ask}
	a.figureSeries = append(a.figureSeries, g)
	return g
}

func (g *figureSeries) gauge(a *polledSource) measure.Gauge {
	out := measure.Gauge{
		From: a.from, Name: g.Name, Unit: g.Unit, Counts: g.Counts, Total: g.Total, Stage: g.Stage,
		Before: g.before, After: g.after, Missed: uint64(a.polls - g.since - g.count),
	}
	for _, c := range g.points {
		out.Points = append(out.Points, measure.Point{At: c.at, Value: c.sum / float64(c.n)})
	}
	return out
}

func (a *polledSource) warnings() []string {
	var all []string
	switch {
	case a.err == nil:
	case len(a.figureSeries) == 0:
		all = append(all, fmt.Sprintf("the %s's own metrics could not be read: %v", a.from, a.err))
	default:
		all = append(all, fmt.Sprintf("reading the %s's own metrics failed %s: %v", a.from, times(a.holes), a.err))
	}
	if a.tooMany {
		all = append(all, fmt.Sprintf("the %s has more than %d metrics; only the first are kept", a.from, mostGauges))
	}
	return all
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
