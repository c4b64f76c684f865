package run

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"carronade/measure"
	"carronade/target"
)

// The bounds of what sources are asked and what is kept of it.
const (
	shortestAsk = 100 * time.Millisecond // between two asks: a server is not to be measured by asking it
	mostAsk     = time.Second            // that an ask may take, and half of what lies between two
	mostGauges  = 100                    // that one source may fill
)

// A named source is somebody to ask for figures, and whose they are.
type namedSource struct {
	from string // Gauge.From
	target.FigureSource
}

// sources are those to ask in this run.
func (e *execution) sources() []namedSource {
	var all []namedSource
	if t, ok := e.session.(target.FigureSource); ok {
		all = append(all, namedSource{"server", t})
	}
	if e.system != nil {
		all = append(all, namedSource{"system", e.system})
	}
	if e.vitals != nil {
		all = append(all, namedSource{"host", e.vitals})
	}
	return all
}

// An inquiry asks sources for their figures before, during and after a run, and
// keeps them as gauges. Each source has a goroutine of its own, so that one that
// is slow holds up neither the run nor the others.
type inquiry struct {
	rows  []*asked
	every time.Duration
	stop  context.CancelFunc
	going sync.WaitGroup
}

// newInquiry is an inquiry that asks once an interval.
func newInquiry(sources []namedSource, interval time.Duration) *inquiry {
	if interval == 0 {
		interval = time.Second
	}
	q := &inquiry{every: max(interval, shortestAsk)}
	for _, t := range sources {
		q.rows = append(q.rows, &asked{namedSource: t, most: measure.DefaultSeries, per: 1})
	}
	return q
}

// each does something with all sources at once.
func (q *inquiry) each(f func(*asked)) {
	var all sync.WaitGroup
	for _, a := range q.rows {
		all.Go(func() { f(a) })
	}
	all.Wait()
}

// before asks for the figures of a system that nothing was fired at.
func (q *inquiry) before(ctx context.Context) {
	q.each(func(a *asked) {
		figures, err := a.ask(ctx, mostAsk)
		a.fault(err)
		for _, f := range figures {
			if g := a.gauge(f, 0); g != nil {
				g.before = &f.Value
			}
		}
	})
}

// begin asks once an interval from now on. now is the offset from the start of
// the run.
func (q *inquiry) begin(now func() time.Duration) {
	ctx, stop := context.WithCancel(context.Background())
	q.stop = stop
	for _, a := range q.rows {
		q.going.Go(func() {
			tick := time.NewTicker(q.every)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				figures, err := a.ask(ctx, min(q.every/2, mostAsk))
				if ctx.Err() != nil {
					return // the end of the run cut it short
				}
				a.fault(err)
				a.note(figures, now())
			}
		})
	}
}

// end stops asking once an interval, and asks for the last time.
func (q *inquiry) end(ctx context.Context) {
	q.stop()
	q.going.Wait()
	q.each(func(a *asked) {
		figures, err := a.ask(ctx, mostAsk)
		a.fault(err)
		for _, f := range figures {
			if g := a.gauge(f, a.asks); g != nil {
				g.after = &f.Value
			}
		}
	})
}

// gauges are what was told, in the order of the sources and of what each told
// first, and words about what was not.
func (q *inquiry) gauges() (all []measure.Gauge, warnings []string) {
	for _, a := range q.rows {
		for _, g := range a.figureSeries {
			all = append(all, g.gauge(a))
		}
		warnings = append(warnings, a.warnings()...)
	}
	return all, warnings
}

// asked is what one source told.
type asked struct {
	namedSource
	figureSeries []*figureSeries
	most         int // points kept of each
	per          int // asks that make one point
	asks         int // during the run
	holes        int // asks that were not answered
	err          error
	over         bool // it told more figures than are kept
}

// figureSeries is one figure of a source. Points are means of consecutive asks, so that
// a long run needs no more memory than one of an hour; one that was not
// answered is a hole and not a zero.
type figureSeries struct {
	measure.Figure
	before, after *float64
	points        []cell
	since         int // the ask during the run from which on it is expected
	count         int // asks that brought a value, before any were joined
}

// cell is the asks per*slot to per*(slot+1)-1 as one point.
type cell struct {
	slot int
	sum  float64
	n    int
	at   time.Duration // of the last
}

// ask asks once. What is no number is left out: a server may say that it does
// not know.
func (a *asked) ask(ctx context.Context, most time.Duration) ([]measure.Figure, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	figures, err := a.Figures(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(figures, func(f measure.Figure) bool { return math.IsNaN(f.Value) || math.IsInf(f.Value, 0) }), nil
}

// fault notes that an ask was not answered, and why: the first error says most.
func (a *asked) fault(err error) {
	if err == nil {
		return
	}
	a.holes++
	if a.err == nil {
		a.err = err
	}
}

// note keeps the answer of one interval.
func (a *asked) note(figures []measure.Figure, at time.Duration) {
	ask := a.asks
	slot := ask / a.per
	a.asks++
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
		g.points = append(g.points, cell{slot, f.Value, 1, at})
	}
	if slot == a.most-1 && a.asks%a.per == 0 {
		a.halve()
	}
}

// halve joins neighbouring slots of every gauge, so that all stay on one axis.
func (a *asked) halve() {
	a.per *= 2
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

// gauge returns what is kept of a figure, which may be told for the first time
// now; nil when that would be too much.
func (a *asked) gauge(f measure.Figure, ask int) *figureSeries {
	for _, g := range a.figureSeries {
		if g.Name == f.Name && g.Unit == f.Unit {
			return g
		}
	}
	if len(a.figureSeries) == mostGauges {
		a.over = true
		return nil
	}
	g := &figureSeries{Figure: f, since: ask}
	a.figureSeries = append(a.figureSeries, g)
	return g
}

func (g *figureSeries) gauge(a *asked) measure.Gauge {
	out := measure.Gauge{
		From: a.from, Name: g.Name, Unit: g.Unit, Counts: g.Counts, Total: g.Total,
		Before: g.before, After: g.after, Missed: uint64(a.asks - g.since - g.count),
	}
	for _, c := range g.points {
		out.Points = append(out.Points, measure.Point{At: c.at, Value: c.sum / float64(c.n)})
	}
	return out
}

func (a *asked) warnings() []string {
	var all []string
	switch {
	case a.err == nil:
	case len(a.figureSeries) == 0:
		all = append(all, fmt.Sprintf("the %s's own figures could not be asked for: %v", a.from, a.err))
	default:
		all = append(all, fmt.Sprintf("the %s gave no figures of its own %s: %v", a.from, times(a.holes), a.err))
	}
	if a.over {
		all = append(all, fmt.Sprintf("the %s has more than %d figures, and the first are kept", a.from, mostGauges))
	}
	return all
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
