package explain

import (
	"math"
	"slices"
	"time"

	"carronade/internal/verdict/stats"
)

// What counts as an incident. docs/explain.md says why.
const (
	slow       = 4   // a stall is longer than this many usual answer times
	higher     = 2   // a spike is this many times its neighbours' median, at least
	deviations = 6   // and this many of their usual deviations above it
	around     = 15  // neighbours on each side
	longSpike  = 5   // more intervals in a row are another level, and no spike
	stepEffect = 0.1 // of the level before
	stepAlpha  = 0.01
	leastLevel = 4   // intervals on each side of a step
	mostSeries = 300 // intervals in which steps are looked for: the cost grows with its square
	leastSpike = 8   // intervals, to know what is usual
)

// size orders incidents of a kind.
func (in *incident) size() float64 {
	switch {
	case in.Usual > 0 && in.Value > 0:
		return math.Abs(math.Log(in.Value / in.Usual))
	case in.Usual > 0 || in.Value > 0: // a step from or to nothing
		return math.MaxFloat64
	}
	return in.Length.Seconds()
}

// stalls returns the stalls that are longer than answers usually take: one event at a time, each
// answer is a gap.
func stalls(r *input) (out []incident) {
	for _, s := range r.Stalls {
		if s.Start < r.Start || s.Start >= r.End || s.End-s.Start < slow*r.Usual {
			continue
		}
		out = append(out, incident{At: s.Start, Length: s.End - s.Start, near: span{s.Start, s.Start}, over: s})
	}
	return out
}

// spikes returns the stretches of at most a few intervals whose 99th percentile is far above
// that of their neighbours, without those of a stall.
func spikes(r *input, stalls []incident) (out []incident) {
	n := len(r.Intervals)
	high := make([]float64, n) // usual value where it is a spike, else 0
	var known []int
	for i := range r.Intervals {
		if r.Intervals[i].P99 > 0 {
			known = append(known, i)
		}
	}
	if len(known) < leastSpike {
		return nil
	}
	logs := make([]float64, len(known))
	for k, i := range known {
		logs[k] = math.Log(r.Intervals[i].P99.Seconds())
	}
	for k, i := range known {
		lo, hi := max(0, k-around), min(len(known), k+around+1)
		near := slices.Concat(logs[lo:k], logs[k+1:hi])
		usual, spread := level(near)
		if logs[k] > usual+max(math.Log(higher), deviations*spread) {
			high[i] = math.Exp(usual)
		}
	}
	for i := 0; i < n; i++ {
		if high[i] == 0 {
			continue
		}
		first := i
		at := first // where it is highest
		for ; i < n && high[i] > 0; i++ {
			if r.Intervals[i].P99 > r.Intervals[at].P99 {
				at = i
			}
		}
		from, to := r.Intervals[first].Start, r.Intervals[i-1].End
		if i-first > longSpike || meets(stalls, from, to) {
			continue
		}
		// Values of other series are of about the same times, but not exactly. From the middle of
		// an interval on, a shift meets as many of them as no shift.
		edge := (r.Intervals[first].End - from) / 2
		out = append(out, incident{
			At: from, Length: to - from, Value: r.Intervals[at].P99.Seconds(), Usual: high[at],
			near: span{from, to}, over: span{from + edge, to - edge},
		})
	}
	return out
}

// meets reports whether a span has a part of a stall or comes right after it: events that waited
// are answered then.
func meets(stalls []incident, from, to time.Duration) bool {
	return slices.ContainsFunc(stalls, func(s incident) bool {
		return s.At < to && from < s.At+s.Length+(to-from)
	})
}

// steps returns the lasting changes of the rate, without those at a stall. Those that follow the
// schedule are marked. Each is placed within its interval: a rate is a mean, so an interval between
// the levels shows when in it the level changed. It also returns the length of the shortest level.
func steps(r *input, stalls []incident) (out []incident, lasts time.Duration) {
	rows := thin(r.Intervals)
	rates := make([]float64, len(rows))
	for i := range rows {
		rates[i] = rows[i].Rate
	}
	fine := make([]cell, len(r.Intervals))
	for i, iv := range r.Intervals {
		fine[i] = cell{iv.Start, iv.End, iv.Rate}
	}
	deviation := noise(fine)
	found := stats.Steps(rates, stats.StepOptions{Alpha: stepAlpha, Effect: stepEffect, Least: leastLevel})
	for k, s := range found {
		at, width := rows[s.At].Start, rows[s.At].End-rows[s.At].Start
		if meets(stalls, at-width, at+width) {
			continue
		}
		lo, hi := 0, len(rows)
		if k > 0 {
			lo = found[k-1].At
		}
		if k+1 < len(found) {
			hi = found[k+1].At
		}
		if level := min(at-rows[lo].Start, rows[hi-1].End-at); len(out) == 0 || level < lasts {
			lasts = level
		}
		per := joins(len(fine))
		when := place(fine, s.At*per, misplaced*per, true, deviation)
		out = append(out, incident{
			At: ((when.Start + when.End) / 2).Round(10 * time.Millisecond), Value: s.After, Usual: s.Before,
			Scheduled: scheduled(rows, lo, s.At, hi, s.Before, s.After),
			near:      when, over: when, off: (when.End - when.Start) / 2,
		})
	}
	return out, lasts
}

// inside is the part of a measurement in which steps can be found: each level needs some intervals.
func inside(r *input) span {
	s := span{r.Start, r.End}
	if rows := thin(r.Intervals); len(rows) > 2*leastLevel {
		s = span{rows[leastLevel].Start, rows[len(rows)-1-leastLevel].End}
	}
	return s
}

// scheduled reports whether what was due changed by at least half as much as the rate did.
func scheduled(rows []interval, lo, at, hi int, before, after float64) bool {
	due := func(rows []interval) float64 {
		x := make([]float64, len(rows))
		for i := range rows {
			x[i] = rows[i].Due
		}
		m, _ := level(x)
		return m
	}
	was, is := due(rows[lo:at]), due(rows[at:hi])
	if was <= 0 || is <= 0 || before <= 0 || after <= 0 {
		return false
	}
	change, wanted := math.Log(after/before), math.Log(is/was)
	return change*wanted > 0 && math.Abs(wanted) >= math.Abs(change)/2
}

// thin joins neighbours so that at most mostSeries intervals remain.
func thin(all []interval) []interval {
	per := joins(len(all))
	if per <= 1 {
		return all
	}
	var out []interval
	for i := 0; i+per <= len(all); i += per {
		row := interval{Start: all[i].Start, End: all[i+per-1].End}
		for _, iv := range all[i : i+per] {
			share := float64(iv.End-iv.Start) / float64(row.End-row.Start)
			row.Rate += iv.Rate * share
			row.Due += iv.Due * share
		}
		out = append(out, row)
	}
	return out
}

// joins is how many of n intervals are joined.
func joins(n int) int { return (n + mostSeries - 1) / mostSeries }

// normal scales the median of absolute deviations to the standard deviation of a normal
// distribution.
const normal = 1.4826

// level returns the median, and the usual deviation from it: the median of the absolute
// deviations, scaled to the standard deviation of a normal distribution.
func level(x []float64) (median, spread float64) {
	if len(x) == 0 {
		return 0, 0
	}
	s := slices.Clone(x)
	median = middle(s)
	for i := range s {
		s[i] = math.Abs(s[i] - median)
	}
	return median, normal * middle(s)
}

// middle sorts the values and returns their median.
func middle(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
