package explain

import (
	"math"
	"slices"
	"time"
)

const (
	eachSide  = 3    // values on each side by which a change of level is found
	levelOf   = 4    // values on each side that make the levels when it is placed
	remains   = 0.5  // of a change, in the values for which it should last
	misplaced = 2    // values by which it may be found too early or too late
	between   = 0.15 // of the change: a value this far from a level is not of it
	sure      = 2.5  // deviations of the noise that make the error of a place
	leastSize = 3    // deviations of the noise that a change has at least
	mostLasts = 12   // values for which a change must last, at most
	leastErr  = 0.02 // of a value's length: readings and answers come a little late
)

// edges returns when a series changes its level, each as the time within which it does. A change
// counts if it is far above the usual difference of neighbouring levels, and half of it remains in
// the number of values for which it should last: a burst does not explain a step that lasts. It is
// looked for on both sides of each value, rather than by the best split of the whole series, which
// every slow trend has in its middle.
func edges(cells []cell, unit string, mean bool, lasts int) (out []span) {
	x := make([]float64, 0, len(cells))
	for i := eachSide; i+eachSide <= len(cells); i++ {
		x = append(x, math.Abs(middle(values(cells[i:i+eachSide]))-middle(values(cells[i-eachSide:i]))))
	}
	if len(x) == 0 {
		return nil
	}
	deviation := noise(cells)
	limit := max(bound(x, unit), leastSize*deviation) // medians of values that repeat hardly differ
	high := 0
	for i := 0; i < len(x); i++ {
		if x[i] <= limit {
			continue
		}
		first, best := i, i
		for ; i < len(x) && x[i] > limit; i++ {
			if x[i] > x[best] {
				best = i
			}
		}
		high += i - first
		if last := i - 1; x[best] == x[first] && x[best] == x[last] {
			best = (first + last) / 2
		}
		at := best + eachSide
		before, after := values(cells[max(0, at-lasts):at]), values(cells[at:min(len(cells), at+lasts)])
		if math.Abs(middle(after)-middle(before)) >= remains*x[best] {
			out = append(out, place(cells, at, misplaced, mean, deviation))
		}
	}
	if float64(high) > mostCovered*float64(len(x)) {
		return nil
	}
	slices.SortFunc(out, func(a, b span) int { return int(a.Start - b.Start) })
	return out
}

func values(cells []cell) []float64 {
	x := make([]float64, len(cells))
	for i := range cells {
		x[i] = cells[i].Value
	}
	return x
}

// noise is the usual deviation of a value from its level, by the differences of neighbours: steps
// and trends hardly change it.
func noise(cells []cell) float64 {
	d := make([]float64, 0, len(cells))
	for i := 1; i < len(cells); i++ {
		d = append(d, math.Abs(cells[i].Value-cells[i-1].Value))
	}
	if len(d) == 0 {
		return 0
	}
	return normal * middle(d) / math.Sqrt2
}

// place returns the time within which a series passes from one level to another, near a value, at
// most reach values away. If values are means over their cells, one that is between the levels shows when in its cell
// the level changed; a reading shows only between which readings. The noise widens the time: by a
// part of a value while it is small against the change, beyond that as the square of its share of
// it, as the error of a change point grows. Values of both sides that are of neither level belong to the passage.
func place(cells []cell, near, reach int, mean bool, deviation float64) span {
	at, from, to := -1, 0.0, 0.0
	least := math.Inf(1)
	for k := max(2, near-reach); k <= min(len(cells)-3, near+reach); k++ {
		before, after := values(cells[max(0, k-levelOf):k]), values(cells[k+1:min(len(cells), k+1+levelOf)])
		a, b := middle(before), middle(after)
		// Without the change, places on one level would fit as well.
		if cost := scatter(before, a) + scatter(after, b) - math.Abs(b-a)/levelOf; cost < least {
			at, from, to, least = k, a, b, cost
		}
	}
	if at < 0 || from == to {
		return span{cells[max(0, near-levelOf)].Start, cells[min(len(cells)-1, near+levelOf)].End}
	}
	change := math.Abs(to - from)
	tolerance := max(leastSize*deviation, between*change)
	first, last := at, at
	for first > max(0, at-misplaced) && math.Abs(cells[first-1].Value-from) > tolerance {
		first--
	}
	for last < min(len(cells)-1, at+misplaced) && math.Abs(cells[last+1].Value-to) > tolerance {
		last++
	}
	width := cells[at].End - cells[at].Start
	off := sure * deviation / change
	if off > 1 {
		off = min(off*off, levelOf)
	}
	value := cells[at].Value
	beyond := value < min(from, to)-tolerance || value > max(from, to)+tolerance
	switch {
	case first < at || last > at || beyond:
	case mean:
		old := min(1, max(0, (value-to)/(from-to))) // the share of the cell before the change
		t := cells[at].Start + time.Duration(old*float64(width))
		e := time.Duration(max(leastErr, off) * float64(width))
		return span{t - e, t + e}
	case math.Abs(value-from) <= tolerance && at+1 < len(cells):
		first, last = at+1, at+1
	}
	e := time.Duration(max(0, off-1) * float64(width))
	return span{cells[first].Start - e, cells[last].End + e}
}

// scatter is the mean distance of values from a level.
func scatter(x []float64, level float64) (sum float64) {
	for _, v := range x {
		sum += math.Abs(v-level) / float64(len(x))
	}
	return sum
}
