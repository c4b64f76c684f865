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
	beside         = 3   // values on each side of a step of a series
)

// A signal is when a cause was active, in one sense.
type signal struct {
	change string  // see Finding.Change
	spans  []Span  // in order of time
	exact  bool    // they have exact times
	scales []scale // that are tried
}

// A scale is how far from a signal an incident may be to coincide with it.
type scale struct {
	by     time.Duration
	begins bool // from its beginning, rather than from any part of it
}

// signals returns the senses in which a cause may coincide with incidents of a kind.
func signals(c *Cause, kind string, r *Run) (out []signal) {
	if c.Moments != nil {
		spans := slices.Clone(c.Moments)
		slices.SortFunc(spans, func(a, b Span) int { return int(a.Start - b.Start) })
		s := signal{exact: true, spans: within(spans, r), scales: []scale{{by: 200 * time.Millisecond}, {by: time.Second}}}
		if kind == Stall { // the times of the others are known to an interval
			s.scales = []scale{
				{20 * time.Millisecond, true}, {50 * time.Millisecond, true}, {200 * time.Millisecond, true}, {time.Second, true}, {by: 20 * time.Millisecond},
			}
		}
		if len(s.spans) > 0 {
			out = append(out, s)
		}
		return out
	}
	cells := make([]Cell, 0, len(c.Cells))
	for _, x := range c.Cells {
		if x.End > r.Start && x.Start < r.End && x.End > x.Start {
			cells = append(cells, x)
		}
	}
	if len(cells) < leastSpike {
		return nil
	}
	width := cells[len(cells)/2].End - cells[len(cells)/2].Start
	add := func(change string, spans []Span, nearest time.Duration) {
		if spans = within(spans, r); len(spans) > 0 {
			out = append(out, signal{change: change, spans: spans, scales: []scale{{by: nearest}, {by: nearest + width}}})
		}
	}
	if kind == Step {
		spans := peaks(changes(cells), c.Unit, 1)
		for i := range spans { // the levels change where these values begin
			spans[i].End = max(spans[i].Start, spans[i].End-width)
		}
		add("step", spans, width/2)
		return out
	}
	add("peak", peaks(cells, c.Unit, 1), 0)
	if c.Falls {
		add("dip", peaks(cells, c.Unit, -1), 0)
	}
	return out
}

// within returns the spans that touch the measurement.
func within(spans []Span, r *Run) (out []Span) {
	for _, s := range spans {
		if s.End >= r.Start && s.Start < r.End {
			out = append(out, Span{max(s.Start, r.Start), min(s.End, r.End)})
		}
	}
	return out
}

// peaks returns the times in which a series is far above its usual value (below it, with sign
// -1); none if that is so too often to be unusual.
func peaks(cells []Cell, unit string, sign float64) (out []Span) {
	x := make([]float64, len(cells))
	most := math.Inf(-1)
	for i, c := range cells {
		x[i] = sign * c.Value
		most = max(most, x[i])
	}
	median, spread := level(x)
	limit := median + max(peakDeviations*spread, peakShare*math.Abs(median), peakRange*(most-median))
	if unit == "%" {
		limit = max(limit, median+peakPercent)
	}
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
		out = append(out, Span{c.Start, c.End})
	}
	if float64(covered) > mostCovered*float64(all) {
		return nil
	}
	return out
}

// changes returns by how much the level of a series changes at each of its values: the difference
// of the medians of the values from there on and of those before.
func changes(cells []Cell) (out []Cell) {
	values := func(cells []Cell) float64 {
		x := make([]float64, len(cells))
		for i := range cells {
			x[i] = cells[i].Value
		}
		return middle(x)
	}
	for i := beside; i+beside <= len(cells); i++ {
		out = append(out, Cell{cells[i].Start, cells[i].End, math.Abs(values(cells[i:i+beside]) - values(cells[i-beside:i]))})
	}
	return out
}
