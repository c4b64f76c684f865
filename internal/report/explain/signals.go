package explain

import (
	"math"
	"slices"
	"time"
)

// What counts as a peak of a series.
const (
	peakDeviations = 6   // usual deviations above the median
	peakShare      = 0.2 // and this share of the median
	peakRange      = 0.1 // and this share of the way to the largest value
	peakPercent    = 2   // percentage points, of a series of percentages
	mostCovered    = 0.3 // of the measurement; more is its usual state
)

// A signal is when a cause was active, in one sense.
type signal struct {
	change string  // see finding.Change
	spans  []span  // in order of time
	exact  bool    // they have exact times
	scales []scale // that are tried
	// timed is set if the times of a step and of this are known better than to an interval. off is the
	// largest error of the latter.
	timed bool
	off   time.Duration
}

// A scale is how far from a signal an incident may be to coincide with it.
type scale struct {
	by     time.Duration
	begins bool // from its beginning, rather than from any part of it
}

// signals returns the senses in which a cause may coincide with incidents of a group.
func signals(c *cause, g *group, r *input) (out []signal) {
	if c.Moments != nil {
		s := signal{exact: true, spans: within(inOrder(c.Moments), g.among), scales: []scale{{by: 200 * time.Millisecond}, {by: time.Second}}}
		switch g.Kind { // the times of spikes are known to an interval
		case stall:
			s.scales = []scale{
				{20 * time.Millisecond, true}, {50 * time.Millisecond, true}, {200 * time.Millisecond, true}, {time.Second, true}, {by: 20 * time.Millisecond},
			}
		case step:
			s.timed = true
			s.scales = []scale{
				{50 * time.Millisecond, true}, {200 * time.Millisecond, true}, {time.Second, true}, {by: 200 * time.Millisecond},
			}
		}
		if len(s.spans) > 0 {
			out = append(out, s)
		}
		return out
	}
	cells := make([]cell, 0, len(c.Cells))
	for _, x := range c.Cells {
		if x.End > r.Start && x.Start < r.End && x.End > x.Start {
			cells = append(cells, x)
		}
	}
	if len(cells) < leastSpike {
		return nil
	}
	width := cells[len(cells)/2].End - cells[len(cells)/2].Start
	add := func(change string, spans []span, by ...time.Duration) {
		if spans = within(spans, g.among); len(spans) == 0 {
			return
		}
		x := signal{change: change, spans: spans, timed: g.Kind == step && c.Mean}
		for _, s := range spans {
			x.off = max(x.off, (s.End-s.Start)/2)
		}
		for _, d := range by {
			x.scales = append(x.scales, scale{by: d})
		}
		out = append(out, x)
	}
	if g.Kind == step {
		by := []time.Duration{0, width / 2, 3 * width / 2}
		if c.Mean {
			by = []time.Duration{width / 20, width / 5, width}
		}
		add("step", edges(cells, c.Unit, c.Mean, min(mostLasts, max(eachSide, int(g.lasts/width)))), by...)
		return out
	}
	add("peak", peaks(cells, c.Unit, 1), 0, width)
	if c.Falls {
		add("dip", peaks(cells, c.Unit, -1), 0, width)
	}
	return out
}

// inOrder returns spans in order of time.
func inOrder(spans []span) []span {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int { return int(a.Start - b.Start) })
	return spans
}

// within returns the spans that touch a period, without what is outside it.
func within(spans []span, r span) (out []span) {
	for _, s := range spans {
		if s.End >= r.Start && s.Start < r.End {
			out = append(out, span{max(s.Start, r.Start), min(s.End, r.End)})
		}
	}
	return out
}

// bound is the value above which values are far above their usual one.
func bound(x []float64, unit string) float64 {
	median, spread := level(x)
	limit := median + max(peakDeviations*spread, peakShare*math.Abs(median), peakRange*(slices.Max(x)-median))
	if unit == "%" {
		limit = max(limit, median+peakPercent)
	}
	return limit
}

// peaks returns the times in which a series is far above its usual value (below it, with sign
// -1); none if that is so too often to be unusual.
func peaks(cells []cell, unit string, sign float64) (out []span) {
	x := make([]float64, len(cells))
	for i, c := range cells {
		x[i] = sign * c.Value
	}
	limit := bound(x, unit)
	var covered, all time.Duration
	for i, c := range cells {
		all += c.End - c.Start
		if x[i] <= limit {
			continue
		}
		covered += c.End - c.Start
		if n := len(out); n > 0 && out[n-1].End == c.Start {
			out[n-1].End = c.End
			continue
		}
		out = append(out, span{c.Start, c.End})
	}
	if float64(covered) > mostCovered*float64(all) {
		return nil
	}
	return out
}
